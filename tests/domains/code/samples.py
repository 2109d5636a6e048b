"""A piece of code in every language, and the symbols that are in it."""

SAMPLES = {
    "a.py": ("class A:\n  def m(self): pass\nX = 1\ndef f(): A()\n", "class A, method m, variable X, function f"),
    "a.js": (
        "class A { m() {} h = () => 1; x = 1; 'q'() {} }\nfunction f() { new A() }\nconst g = () => 1;\n"
        "const o = { i() {}, 'j': function () {}, k: () => 1 };\no.l = () => 1;\n",
        "class A, method m, method h, variable x, method q, function f, function g, variable o, method i, method j, "
        "method k, function l",
    ),
    "a.ts": (
        "interface I { p: A }\ntype T = I;\nenum E { X }\nclass A { m(): T { return 1 } h = () => 1 }\n",
        "interface I, variable p, type_alias T, enum E, variable X, class A, method m, method h",
    ),
    "a.tsx": ("function View() { return <A b={c} />; }\n", "function View"),
    "a.go": (
        "package x\ntype A struct { F int }\nfunc (a *A) M() {}\nfunc f() { A{}.M() }\n",
        "class A, variable F, method M, function f",
    ),
    "a.rs": (
        "struct A { f: i32 }\nimpl A { fn m(&self) {} }\ntrait T {}\nfn g() -> A {}\n",
        "class A, variable f, implementation A, method m, interface T, function g",
    ),
    "A.java": (
        "class A { int f; void m() {} }\ninterface I {}\nenum E { X }\nclass B extends A {}\n",
        "class A, variable f, method m, interface I, enum E, variable X, class B",
    ),
    "a.c": (
        "struct A { int f; };\nint *g(struct A a) { return 0; }\n#define M 1\n",
        "class A, variable f, function g, macro M",
    ),
    "a.cpp": (
        "namespace n { class A { int m(); }; }\nint n::A::m() { return 0; }\n",
        "namespace n, class A, method m, method m",
    ),
    "a.h": ("class A {\npublic:\n  int m();\n};\nvoid f(A a);\n", "class A, method m, function f"),
    "A.cs": (
        "namespace N { class A { int P { get; set; } void M() {} } class B : A {} }\n",
        "namespace N, class A, variable P, method M, class B",
    ),
    "a.rb": (
        "module M\n  class A\n    def m?; end\n  end\nend\nA.new\n",
        "namespace M, class A, method m?",
    ),
    "a.php": (
        "<?php\nclass A { public $p; function m() {} }\nfunction f() { new A(); }\n",
        "class A, variable p, method m, function f",
    ),
    "a.sh": ("X=1\nA() { echo $X; }\nA\n", "variable X, function A"),
    "a.kt": ("class A {\n  fun m() = 1\n}\nfun f() = A()\n", "class A, method m, function f"),
    "a.swift": ("class A { func m() {} }\nfunc f() { A() }\n", "class A, method m, function f"),
    "a.scala": ("class A { def m = 1 }\nobject O { val a = new A }\n", "class A, method m, class O, variable a"),
    "a.lua": ("local function A() end\nfunction M.g() A() end\n", "function A, function g"),
}
"""Each of them also mentions `A` somewhere, without defining it there."""

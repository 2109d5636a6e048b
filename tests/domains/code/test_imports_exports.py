"""What files take from elsewhere and what they give away: both can be asked for, and neither is in the way."""

import pytest

from tests.domains.code.codebase import Codebase

SHOP = {
    "shop/cart.py": (
        "import os.path as p\nfrom shop.tax import TAX as T, rate\n\n\ndef total():\n    from . import late\n"
    ),
    "web/cart.js": (
        'import React, { useState as s } from "react";\nimport * as all from "./all";\n'
        "function hidden() {}\nfunction shown() {}\nconst main = () => 1;\n"
        'export { shown };\nexport default main;\nexport const one = 1;\nexport { x } from "./x";\n'
    ),
}
IMPORTED = {
    "a.py": ("from __future__ import annotations\nimport a.b, c\nfrom ..d import e\n", "annotations a.b c ..d e"),
    "a.ts": ('import type { T } from "./t";\nimport D from "d";\n', "T ./t D d"),
    "a.go": ('package x\nimport (\n\t"fmt"\n\tm "a/b"\n)\n', "fmt a/b"),
    "a.rs": ("use std::io;\nuse a::{b, c::d};\nuse e as f;\nuse g::*;\n", "std::io a b c::d e g"),
    "A.java": ("import java.util.List;\nimport static a.B.c;\n", "java.util.List a.B.c"),
    "a.c": ('#include <stdio.h>\n#include "own.h"\n', "stdio.h own.h"),
    "a.cpp": ("#include <vector>\n", "vector"),
    "A.cs": ("using System;\nusing A.B;\n", "System A.B"),
    "a.php": ("<?php\nuse A\\B;\nuse C;\n", "A\\B C"),
    "a.kt": ("import a.b.C\n", "a.b.C"),
    "a.swift": ("import Foundation\n", "Foundation"),
}
EXPORTED = {
    "a.go": ("package x\ntype A struct { F int; g int }\nfunc (a *A) M() {}\nfunc f() {}\n", "A F M"),
    "a.rs": ("pub struct A;\nstruct B;\npub fn f() {}\npub type T = A;\n", "A T f"),
    "A.java": ("public class A { public int f; int g; public void m() {} private void n() {} }\nclass B {}\n", "A f m"),
    "A.cs": ("public class A { public int P { get; set; } int q; public void M() {} void N() {} }\n", "A M P"),
    "a.php": ("<?php\nclass A { public $p; private $q; public function m() {} private function n() {} }\n", "A m p"),
    "a.ts": ("export interface I {}\nexport enum E { X }\nclass C {}\nexport { C as D };\nclass H {}\n", "C E I"),
}


async def test_imports_are_found_when_asked_for_and_are_no_definitions(codebase: Codebase) -> None:
    agent = await codebase.open(SHOP)
    assert await codebase.symbols(agent, kinds=["import"], path="shop") == [
        "shop/cart.py:1-1 import os.path",
        "shop/cart.py:2-2 import shop.tax",
        "shop/cart.py:2-2 import TAX",
        "shop/cart.py:2-2 import rate",
        "shop/cart.py:6-6 import .",
        "shop/cart.py:6-6 import late",
    ]
    assert await codebase.symbols(agent, "React", kinds=["import"]) == [
        "web/cart.js:1-1 import React",
        "web/cart.js:1-1 import react",
    ]
    assert await codebase.symbols(agent, "shop.t*", kinds=["import", "function"]) == [
        "shop/cart.py:2-2 import shop.tax"
    ]
    assert await codebase.symbols(agent, path="shop") == ["shop/cart.py:5-6 function total"]
    assert await codebase.symbols(agent, "=TAX") == []
    found = await codebase.fleet.call(agent, "find_references", symbol="TAX")
    assert (found.definitions_total, [each["line"] for each in found.references]) == (0, [2])
    assert await codebase.references(agent, "late") == ["shop/cart.py:6 in total"]


async def test_exported_symbols_can_be_asked_for(codebase: Codebase) -> None:
    agent = await codebase.open(SHOP)
    exported = [
        "web/cart.js:4-4 function shown",
        "web/cart.js:5-5 function main",
        "web/cart.js:8-8 variable one",
    ]
    assert await codebase.symbols(agent, kinds=["export"]) == exported
    assert await codebase.symbols(agent, "sho", kinds=["export"]) == exported[:1]
    assert await codebase.symbols(agent, "hidden", kinds=["export"]) == []
    (shown,) = (await codebase.fleet.call(agent, "code_symbols", query="=shown")).symbols
    assert (shown["kind"], shown["exported"]) == ("function", True)


async def test_imports_and_exports_change_with_their_file(codebase: Codebase) -> None:
    agent = await codebase.open({"a.py": "import old\n", "b.py": "import other\n"})
    assert len(await codebase.symbols(agent, kinds=["import"])) == 2
    codebase.write("a.py", "import new\n")
    assert await codebase.symbols(agent, "n", kinds=["import"]) == ["a.py:1-1 import new"]
    for path in ("a.py", "b.py"):
        (codebase.root / path).unlink()
    assert await codebase.symbols(agent, kinds=["import"]) == []
    assert (codebase.count("segments"), codebase.count("words")) == (0, 0)


@pytest.mark.parametrize("kind", ["import", "export"])
async def test_every_language_says_its_own(codebase: Codebase, kind: str) -> None:
    samples = IMPORTED if kind == "import" else EXPORTED
    agent = await codebase.open({path: text for path, (text, _) in samples.items()})
    for path, (_, expected) in samples.items():
        found = [each.rpartition(" ")[2] for each in await codebase.symbols(agent, path=path, kinds=[kind])]
        assert (path, sorted(found)) == (path, sorted(expected.split()))

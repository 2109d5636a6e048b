"""What an agent is told of the code: what counts first, the tests last, and no more than it can read."""

from typing import Any

import pytest

from rookery.domains.work.repo_map import best_matches, is_test, matches_text, offered, repo_map, words_of


def symbol(name: str, path: str = "src/a.py", start: int = 1, **more: Any) -> dict[str, Any]:
    return {"name": name, "kind": "function", "path": path, "start_line": start, "end_line": start + 2, **more}


def test_of_a_project_without_symbols_nothing_is_told() -> None:
    assert (repo_map([]), matches_text([]), words_of("!!!"), best_matches({})) == ("", "", [], [])


def test_files_come_in_the_order_in_which_they_count_with_their_symbols_by_line() -> None:
    found = [
        symbol("helper", "tests/test_a.py"),
        symbol("main", "tools/run.py"),
        symbol("second", "src/a.py", 9),
        symbol("App", "server/app.ts", kind="class", members=3),
        symbol("first", "src/a.py", 2),
        symbol("first", "src/a.py", 2),
    ]
    assert repo_map(found).splitlines() == [
        "server/app.ts",
        "  class App [1-3, 3 members]",
        "src/a.py",
        "  function first [2-4]",
        "  function second [9-11]",
        "tools/run.py",
        "  function main [1-3]",
        "tests/test_a.py",
        "  function helper [1-3]",
    ]


def test_a_file_offers_what_it_exports_or_where_nothing_says_so_its_outermost_public_names() -> None:
    found = [
        symbol("shown", "a.ts", exported=True), symbol("inner", "a.ts"), symbol("public"), symbol("_private"),
        {**symbol("nested"), "in": "public"},
    ]  # fmt: skip
    assert [each["name"] for each in offered(found)] == ["shown", "public"]


@pytest.mark.parametrize("files", [1, 3, 150, 1000])
def test_the_map_never_has_more_lines_than_it_may_and_no_path_without_a_symbol(files: int) -> None:
    found = [
        symbol(f"f{line}", f"src/m{number:04}.py", line)
        for number in range(files)
        for line in range(1, 400 // files + 2)
    ]
    lines = repo_map(found).splitlines()
    assert len(lines) <= 200
    assert lines[-1].startswith("  ")
    assert len(lines) >= min(len(found), 199)


@pytest.mark.parametrize(
    ("path", "test"),
    [
        ("tests/a.py", True), ("src/__tests__/a.ts", True), ("src/a.test.ts", True), ("pkg/a_test.go", True),
        ("spec/models/user_spec.rb", True), ("src/test_login.py", True), ("src/latest.py", False),
        ("src/testing.py", False), ("src/contest/a.py", False), ("attest/a.py", False),
    ],
)  # fmt: skip
def test_tests_are_known_by_their_place_and_name(path: str, test: bool) -> None:
    assert is_test(path) is test


def test_words_that_look_like_code_come_first_and_those_that_name_nothing_not_at_all() -> None:
    text = "Fix the login: parse_token must not accept the old Session when userName is empty. Login!"
    assert words_of(text) == ["parse_token", "userName", "login", "accept", "Session", "empty"]
    assert len(words_of(" ".join(f"word{number}" for number in range(100)))) == 12


def test_the_nearest_names_come_first_and_only_those_that_have_the_word() -> None:
    found = {
        "login": [
            symbol("relogin"), symbol("LoginPage", start=5), symbol("login", "tests/test_l.py"),
            symbol("login", start=9), symbol("logging", start=20), symbol("login", kind="import", start=30),
        ]
    }  # fmt: skip
    best = best_matches(found)
    assert [(each["name"], each["path"]) for each in best] == [
        ("login", "src/a.py"), ("login", "tests/test_l.py"), ("LoginPage", "src/a.py"), ("relogin", "src/a.py"),
    ]  # fmt: skip
    assert matches_text(best[:1]) == "function login [9-11] in src/a.py"
    many = {"f": [symbol(f"f{number}", start=number) for number in range(50)]}
    assert len(best_matches(many)) == 20


def test_no_name_of_a_file_or_symbol_begins_a_line_of_its_own() -> None:
    text = repo_map([symbol("x\n!say hello", "src/a\n!fail.py")])
    assert "\n!" not in text

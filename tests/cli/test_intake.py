"""The commands with which people bring requests and see what became of them."""

from pathlib import Path

import pytest

from tests.cli.terminal import Terminal

ON = ("--project", "shop")


@pytest.fixture
def shop(terminal_on: Terminal, tmp_path: Path) -> Terminal:
    """A terminal whose home has a project with a folder."""
    (tmp_path / "shop").mkdir()
    terminal_on.ok("projects", "create", "shop", "--path", str(tmp_path / "shop"))
    return terminal_on


def test_without_requests_the_list_says_how_to_bring_one(terminal: Terminal) -> None:
    assert "rookery intake add" in terminal.ok("intake")
    assert terminal.json("intake", "--json") == {"requests": [], "counts": {}, "left": [], "failed": None}


def test_what_is_no_request_ends_in_one_sentence(shop: Terminal, tmp_path: Path) -> None:
    latin = tmp_path / "latin.txt"
    latin.write_bytes("schön".encode("latin-1"))
    long = tmp_path / "long.txt"
    long.write_text("x" * 20_001, encoding="utf-8")
    assert "No such file" in shop.fails("intake", "add", str(tmp_path / "no.md"), code=2)
    assert "is not UTF-8" in shop.fails("intake", "add", str(latin), code=2)
    assert "no text" in shop.fails("intake", "add", "-", typed=" \n", code=2)
    assert "at most 20000 characters" in shop.fails("intake", "add", str(long))
    assert "there is no project no" in shop.fails("intake", "add", "-", "--project", "no", typed="x")
    assert "there is no project no" in shop.fails("intake", "list", "--project", "no")
    assert "is not one of" in shop.fails("intake", "list", "--state", "lost", code=2)
    assert shop.json("intake", "--json")["requests"] == []


def test_files_and_what_is_typed_become_requests_of_the_project_each_once(shop: Terminal, tmp_path: Path) -> None:
    for name, text in (("a.md", "# Export\n\nIt is slow."), ("b.txt", "a dark theme")):
        (tmp_path / name).write_text(text, encoding="utf-8")
    files = [str(tmp_path / name) for name in ("a.md", "b.txt")]
    first = shop.json("intake", "add", *files, "-", *ON, "--json", typed="A  DARK theme")
    assert [(each["state"], each["known"]) for each in first] == [("new", False), ("new", False), ("new", True)]
    assert first[1]["id"] == first[2]["id"]
    listed = shop.json("intake", "list", *ON, "--json")
    assert listed["counts"] == {"new": 2}
    assert sorted((each["text"], each["source"], each["submitted_by"]) for each in listed["requests"]) == [
        ("# Export It is slow.", "cli", "owner"),
        ("a dark theme", "cli", "owner"),
    ]
    assert shop.json("intake", "list", "--state", "done", *ON, "--json")["requests"] == []
    assert "a dark theme" in shop.ok("intake", "list", *ON)
    assert shop.json("intake", "list", "--json")["requests"] == []


def test_every_line_is_a_request_if_that_is_wanted_however_many_there_are(shop: Terminal) -> None:
    typed = "\n".join(["", *(f"wish {number}" for number in range(150)), "  "])
    stored = shop.json("intake", "add", "--lines", "-", *ON, "--json", typed=typed)
    assert len(stored) == 150
    assert shop.json("intake", "list", "--limit", "1", *ON, "--json")["counts"] == {"new": 150}


def test_files_that_cannot_be_taken_in_are_told_with_the_list(shop: Terminal, tmp_path: Path) -> None:
    box = tmp_path / "shop" / "wishes"
    box.mkdir()
    (box / "link.md").symlink_to("/etc/passwd")
    shop.ok("orchestrator", "configure", "--intake-folder", "wishes", *ON)
    (left,) = shop.json("intake", "list", *ON, "--json")["left"]
    assert (left["file"], "links are not followed" in left["why"]) == ("link.md", True)
    assert "link.md is not taken in" in shop.run("intake", "list", *ON).stderr

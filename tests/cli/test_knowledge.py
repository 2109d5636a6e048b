"""The commands with which the owner gives agents something to read."""

import io
from pathlib import Path

import pytest
from rich.console import Console
from rich.progress import Progress

from rookery.cli.indexing import Bar
from tests.cli.terminal import Terminal


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with documents, in which the person stands."""
    made = tmp_path / "work"
    for name, text in {
        "docs/tea.md": "# Tea\n\nBoil water and wait for three minutes.\n",
        "docs/deep/cake.txt": "Bake the cake with sugar.\n",
        "docs/broken.md": "\0",
        "docs/picture.png": "x",
        "README.md": "# Read me\n\nStart with the tea.\n",
    }.items():
        file = made / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    monkeypatch.chdir(made)
    return made


def test_without_documents_the_list_says_how_to_add_some(terminal: Terminal) -> None:
    assert "rookery knowledge add" in terminal.ok("knowledge")
    assert terminal.json("knowledge", "--json") == []
    assert "setting vault of project default is not set" in terminal.fails("knowledge", "search", "tea")


def test_what_is_not_there_or_outside_of_the_folder_ends_in_one_sentence(terminal: Terminal, folder: Path) -> None:
    terminal.ok("projects", "create", "docs", "--path", str(folder / "docs"))
    on = ("--project", "docs")
    assert "there is no file or folder nowhere" in terminal.fails("knowledge", "add", "nowhere", *on)
    assert "not in the project's folder" in terminal.fails("knowledge", "add", "README.md", *on)
    (folder / "docs" / "out.md").symlink_to(folder / "README.md")
    assert "skipped  out.md" in terminal.ok("knowledge", "add", "docs/out.md", *on)
    assert "there is no document at or below x" in terminal.fails("knowledge", "remove", "x", *on)
    assert "there is no project no" in terminal.fails("knowledge", "add", "docs", "--project", "no")
    assert terminal.json("knowledge", "list", *on, "--json") == []


def test_a_folder_is_read_in_and_what_cannot_be_read_is_skipped(terminal_on: Terminal, folder: Path) -> None:
    terminal = terminal_on
    shown = terminal.ok("knowledge", "add", "docs")
    assert "indexed  docs/tea.md  1 chunks" in shown
    assert "skipped  docs/broken.md" in shown
    assert "2 indexed, 1 skipped" in shown
    again = terminal.json("knowledge", "add", "docs", "README.md", "--json")
    assert (again["indexed"], sorted(again["unchanged"])) == (["README.md"], ["docs/deep/cake.txt", "docs/tea.md"])
    assert [each["path"] for each in again["skipped"]] == ["docs/broken.md"]
    listed = terminal.json("knowledge", "list", "--below", "docs", "--json")
    assert [each["path"] for each in listed] == ["docs/deep/cake.txt", "docs/tea.md"]
    found = terminal.json("knowledge", "search", "boil water", "--json")
    assert found["results"][0]["path"] == "docs/tea.md"
    assert "docs/tea.md" in terminal.ok("knowledge", "search", "boil water")


def test_documents_of_files_that_are_gone_are_pruned_and_others_removed(terminal: Terminal, folder: Path) -> None:
    terminal.ok("knowledge", "add", ".")
    (folder / "docs" / "tea.md").unlink()
    pruned = terminal.json("knowledge", "add", "docs", "--prune", "--json")
    assert pruned["removed"] == ["docs/tea.md"]
    gone = terminal.json("knowledge", "remove", "docs", "README.md", "--json")
    assert [each["path"] for each in gone] == ["docs/deep/cake.txt", "README.md"]
    assert terminal.json("knowledge", "list", "--json") == []
    assert (folder / "README.md").exists()


def test_the_vault_says_what_is_read_and_whether_it_is_searched(terminal: Terminal, folder: Path) -> None:
    set_up = terminal.json(
        "knowledge", "vault", "--root", str(folder), "--folder", "docs", "--glob", "*.md", "--json"
    )  # fmt: skip
    assert (set_up["on"], set_up["folders"], set_up["globs"]) == (True, ["docs"], ["*.md"])
    assert terminal.json("knowledge", "add", "--json")["indexed"] == ["docs/tea.md"]
    refused = terminal.json("knowledge", "add", "README.md", "--json")["skipped"]
    assert "is not in the vault" in refused[0]["reason"]
    terminal.ok("knowledge", "vault", "--off")
    assert "is off" in terminal.fails("knowledge", "add", "docs")
    assert "is off" in terminal.fails("knowledge", "search", "tea")


def test_on_a_terminal_a_bar_moves_and_only_trouble_gets_a_line() -> None:
    drawn = io.StringIO()
    with Progress(console=Console(file=drawn, force_terminal=True, width=200)) as progress:
        bar = Bar(progress)
        bar.expect(2)
        bar.tell("indexed", "a.md", "3 chunks")
        bar.tell("skipped", "b.md", "b.md is empty")
        bar.tell("removed", "c.md", "its file is gone")
        assert (progress.tasks[0].completed, progress.tasks[0].total) == (2, 2)
    assert "skipped  b.md  b.md is empty" in drawn.getvalue()
    assert "3 chunks" not in drawn.getvalue()

"""The commands with which the owner looks at the health of a project."""

import io
from pathlib import Path

import pytest
from rich.console import Console
from rich.progress import Progress

from rookery.cli.health_progress import Bar
from tests.cli.terminal import Terminal

ON = ("--project", "shop")


@pytest.fixture
def shop(terminal_on: Terminal, tmp_path: Path) -> Terminal:
    """A terminal whose home has a project with a folder and a note in it."""
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "a.py").write_text("# TODO\n")
    terminal_on.ok("projects", "create", "shop", "--path", str(tmp_path / "shop"))
    return terminal_on


def test_what_is_not_there_ends_in_one_sentence(terminal: Terminal) -> None:
    for command in ("collect", "trends", "settings"):
        assert "there is no project no" in terminal.fails("health", command, "--project", "no")
    assert "project default has no folder" in terminal.fails("health", "collect")
    assert "limit_s" in terminal.fails("health", "settings", "--limit-s", "0")
    both = terminal.fails("health", "settings", "--exclude", "x", "--no-exclude", code=2)
    assert "--exclude or --no-exclude" in both
    assert "METRIC=COUNT" in terminal.fails("health", "record", "todos", code=2)
    assert "is none of" in terminal.fails("health", "record", "bugs=1")


def test_before_the_first_look_there_is_no_trend(terminal: Terminal) -> None:
    assert "Run an improvement cycle" in terminal.ok("health", "trends")


def test_a_look_is_shown_kept_and_compared(shop: Terminal) -> None:
    shop.ok("health", "settings", "--tests", "echo 3 failed; exit 1", "--limit-s", "30", *ON)
    result = shop.run("health", "collect", *ON)
    assert result.exit_code == 0
    assert "test failure count  3" in result.stdout
    assert "types not counted: no command is set" in result.stderr
    assert "rookery health settings" in result.stderr
    assert "4/4" in result.stderr
    found = shop.json("health", "collect", *ON, "--json")
    assert (found["snapshot"]["todo_count"], found["samples"]) == (1, ["a.py:1: # TODO"])
    assert "test_failures: 3 → 3 STABLE" in shop.ok("health", "trends", *ON)
    assert shop.json("health", "trends", *ON, "--limit", "1", "--json")["snapshots"] == 1
    recorded = shop.json("health", "record", "test_failures=0", "hacks=2", *ON, "--json")
    assert (recorded["hack_count"], recorded["source"]) == (2, "recorded")
    assert shop.json("health", "trends", "--days", "1", *ON, "--json")["snapshots"] == 3


def test_what_is_looked_at_is_set_and_shown(shop: Terminal) -> None:
    words = ("--types", "pyright", "--outdated", "npm outdated", "--exclude", "*.sql", "--large-lines", "300")
    shop.ok("health", "settings", *words, *ON)
    now = shop.json("health", "settings", *ON, "--json")
    assert (now["types"], now["outdated"], now["exclude"]) == ("pyright", "npm outdated", ["*.sql"])
    assert (now["tests"], now["large_lines"], now["limit_s"]) == ("", 300, 60)
    assert shop.json("health", "settings", "--no-exclude", "--types", "", *ON, "--json")["exclude"] == []
    assert "configure_health" in shop.ok("audit", "list")


def test_on_a_terminal_a_bar_moves_and_each_probe_gets_a_line() -> None:
    drawn = io.StringIO()
    with Progress(console=Console(file=drawn, force_terminal=True, width=200)) as progress:
        bar = Bar(progress)
        bar.tell("progress", {"progress": 0, "total": 4, "message": "probing"})
        bar.tell("status", {"message": "something else"})
        bar.tell("progress", {"progress": 1, "total": 4, "message": "tests: \x1b[31mtest_failures 3"})
        assert (progress.tasks[0].completed, progress.tasks[0].total) == (1, 4)
    assert "tests: ?[31mtest_failures 3" in drawn.getvalue()
    assert "something else" not in drawn.getvalue()

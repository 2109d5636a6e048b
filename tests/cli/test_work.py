"""The commands with which the owner has agents work, and says how their work is checked."""

from pathlib import Path

import pytest
import sqlalchemy as sa

from rookery.db.database import open_database
from rookery.domains.work.tables import work_tasks
from tests.cli.terminal import Terminal

ON = ("--project", "shop")


@pytest.fixture
def shop(terminal_on: Terminal, tmp_path: Path) -> Terminal:
    """A terminal whose home has a project with a folder."""
    (tmp_path / "shop").mkdir()
    terminal_on.ok("projects", "create", "shop", "--path", str(tmp_path / "shop"))
    return terminal_on


def test_without_tasks_the_list_says_how_to_make_one(terminal: Terminal) -> None:
    assert "rookery work create" in terminal.ok("work")
    assert terminal.json("work", "--json") == []


def test_what_is_not_there_ends_in_one_sentence(terminal: Terminal) -> None:
    for command in ("show", "cancel"):
        assert "there is no work task wtk-404" in terminal.fails("work", command, "wtk-404")
    assert "project default has no folder" in terminal.fails("work", "create", "fix it")
    assert "there is no project no" in terminal.fails("work", "create", "fix it", "--project", "no")
    assert "there is no agent eve" in terminal.fails("work", "create", "fix it", "--agent", "eve")
    assert "must be one of pending" in terminal.fails("work", "list", "--status", "done")
    assert "there is no project no" in terminal.fails("work", "settings", "--project", "no")
    both = terminal.fails("work", "settings", "--check", "true", "--no-checks", code=2)
    assert "--check or --no-checks" in both


def test_a_task_is_made_shown_and_cancelled(shop: Terminal) -> None:
    shop.ok("agents", "create", "ada")
    made = shop.json("work", "create", "Fix the login", "--agent", "ada", "--key", "k", *ON, "--json")
    assert (made["status"], made["branch_name"][:24]) == ("pending", "agent/ada/fix-the-login-")
    again = shop.json("work", "create", "Fix the login", "--agent", "ada", "--key", "k", *ON, "--json")
    assert again["id"] == made["id"]
    mine = shop.json("work", "create", "mine", *ON, "--json")
    assert [task["id"] for task in shop.json("work", "--json")] == [mine["id"], made["id"]]
    assert "Fix the login" in shop.ok("work", "list", "--status", "pending")
    shown = shop.json("work", "show", made["id"], "--json")
    assert (shown["description"], shown["source"]) == ("Fix the login", "cli")
    cancelled = shop.json("work", "cancel", made["id"], "--json")
    assert (cancelled["status"], cancelled["error"]) == ("failed", "cancelled by owner")
    assert "is failed already" in shop.fails("work", "cancel", made["id"])


def test_how_work_is_checked_is_set_and_shown(shop: Terminal) -> None:
    first = shop.json("work", "settings", *ON, "--json")
    assert first == {"project": "shop", "install": "", "checks": [], "limit_s": 900}
    shop.ok("work", "settings", "--install", "make deps", "--check", "make lint", "--check", "make test", *ON)
    shop.ok("work", "settings", "--limit-s", "60", *ON)
    now = shop.json("work", "settings", *ON, "--json")
    assert (now["install"], now["checks"], now["limit_s"]) == ("make deps", ["make lint", "make test"], 60)
    assert shop.json("work", "settings", "--no-checks", *ON, "--json")["checks"] == []
    assert "limit_s" in shop.fails("work", "settings", "--limit-s", "0", *ON)
    assert "configure_work" in shop.ok("audit", "list")


def test_what_a_completed_task_proposes_is_told_in_a_line(shop: Terminal) -> None:
    made = shop.json("work", "create", "Fix the login", *ON, "--json")
    record = {
        "branch": made["branch_name"], "base_branch": "main", "base": "b" * 40, "head": "c" * 40, "commits": 2,
        "added": 5, "deleted": 1, "changed_files": 2, "files": [], "risk": 10, "risk_level": "low",
        "risk_reasons": ["code changed and no test did (10)"],
    }  # fmt: skip
    database = open_database(shop.environ["ROOKERY_DATABASE"])
    try:
        proposed = sa.update(work_tasks).where(work_tasks.c.id == made["id"]).values(pull_request=record)
        database.direct(lambda tx: tx.run(proposed), write=True)
    finally:
        database.close()
    told = "2 commits to main, +5 -1 in 2 files, risk 10 (low): code changed and no test did (10)"
    assert told in shop.ok("work", "show", made["id"])
    assert shop.json("work", "show", made["id"], "--json")["pull_request"] == record

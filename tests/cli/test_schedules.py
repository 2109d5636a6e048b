"""The commands with which the owner keeps schedules and agrees to what is due."""

import sqlalchemy as sa

from rookery.app import make_platform
from rookery.db.clock import now_ms
from rookery.db.tx import Tx
from rookery.domains.schedules.planning import FireArgs, fire, plan
from rookery.domains.schedules.tables import schedules
from rookery.settings import Settings
from tests.cli.terminal import Terminal

REVIEW = '{"type": "codebase_review"}'


def come_due(terminal: Terminal, schedule_id: str) -> None:
    """Let the schedule be due now, as a worker would see to it."""
    platform = make_platform(Settings(home=str(terminal.home), plugins=False))

    def work(tx: Tx) -> None:
        row = tx.one(sa.select(schedules).where(schedules.c.id == schedule_id))
        assert row is not None
        due_ms = now_ms(tx)
        plan(tx, row, due_ms)
        fire(tx, row.tenant, FireArgs(schedule_id=row.id, version=row.version, due_ms=due_ms))

    try:
        platform.database.direct(work, write=True)
    finally:
        platform.close()


def test_without_schedules_the_list_says_how_to_make_one(terminal: Terminal) -> None:
    assert "rookery schedules create" in terminal.ok("schedules")
    assert terminal.json("schedules", "--json") == []
    assert "nothing awaits approval" in terminal.ok("schedules", "pending")
    assert "nothing was due yet" in terminal.ok("schedules", "history")


def test_what_is_wrong_ends_in_one_sentence(terminal: Terminal) -> None:
    made = ("schedules", "create", "tidy", "--prompt", "tidy up")
    assert "give either cron_expression or interval_minutes" in terminal.fails(*made)
    assert "bad hour '25'" in terminal.fails(*made, "--cron", "0 25 * * *")
    assert "interval_minutes: 4" in terminal.fails(*made, "--every", "4")
    assert "there is no agent nobody" in terminal.fails(*made, "--every", "5", "--agent", "nobody")
    assert "is not JSON" in terminal.fails(*made, "--every", "5", "--action", "{", code=2)
    assert "is no JSON object" in terminal.fails(*made, "--every", "5", "--action", "[]", code=2)
    assert "must have 1 to 10 actions" in terminal.fails("schedules", "create", "tidy", "--every", "5")
    for command in ("show", "pause", "resume", "delete", "history"):
        assert "there is no schedule sch-none" in terminal.fails("schedules", command, "sch-none")
    for command in ("approve", "deny"):
        assert "there is no execution 01234567" in terminal.fails("schedules", command, "01234567")


def test_a_schedule_is_made_shown_paused_resumed_and_deleted(terminal: Terminal) -> None:
    made = terminal.json(
        "schedules", "create", "tidy", "--prompt", "tidy up", "--cron", "0 9 * * MON", "--timezone", "Europe/Berlin",
        "--max-runs", "3", "--budget", "1.5", "--missed", "skip", "--policy", "auto", "--json",
    )  # fmt: skip
    assert (made["cron_expression"], made["max_executions"], made["approval_policy"]) == ("0 9 * * MON", 3, "auto")
    schedule = made["id"]
    assert schedule in terminal.ok("schedules")
    assert "Europe/Berlin" in terminal.ok("schedules", "show", schedule)
    assert terminal.json("schedules", "pause", schedule, "--json")["status"] == "paused"
    assert terminal.json("schedules", "resume", schedule, "--json")["status"] == "active"
    assert "tidy and its history are gone" in terminal.ok("schedules", "delete", schedule)
    assert terminal.json("schedules", "list", "--json") == []


def test_what_waits_is_approved_or_denied_by_a_short_id(terminal: Terminal) -> None:
    for command, status in (("approve", "approved"), ("deny", "denied")):
        made = terminal.json("schedules", "create", command, "--every", "60", "--action", REVIEW, "--json")
        come_due(terminal, made["id"])
        (waiting,) = terminal.json("schedules", "pending", "--json")
        assert len(waiting["id"]) == 8
        assert waiting["id"] in terminal.ok("schedules", "pending")
        assert terminal.json("schedules", command, waiting["id"], "--json")["status"] == status
        assert f"is {status}" in terminal.fails("schedules", "deny", waiting["id"])
        whole = terminal.json("schedules", "history", "--execution", waiting["id"], "--json")
        assert (whole["status"], whole["steps"][0]["type"]) == (status, "codebase_review")
        assert [each["status"] for each in terminal.json("schedules", "history", made["id"], "--json")] == [status]
    assert len(terminal.json("schedules", "history", "--json")) == 2

"""`rookery audit`: the record cannot be changed without being found out."""

import sqlite3
from contextlib import closing

import pytest

from tests.cli.terminal import Terminal

TRIGGERS = ("audit_log_no_update", "audit_log_no_delete")


def tamper(terminal: Terminal, statement: str) -> None:
    """What somebody with the file in their hands could do."""
    with closing(sqlite3.connect(terminal.database)) as connection, connection:
        for trigger in TRIGGERS:
            connection.execute(f"DROP TRIGGER {trigger}")
        assert connection.execute(statement).rowcount > 0


def test_an_untouched_record_is_intact(terminal_on: Terminal) -> None:
    for _ in range(3):
        terminal_on.ok("call", "ping")
    told = terminal_on.ok("audit", "verify").splitlines()
    # The record of the look itself may be there when it looks.
    assert told[0].startswith(("The chain is intact: 3 records", "The chain is intact: 4 records"))
    assert told[1].startswith("head ")


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE audit_log SET outcome = 'allowed' WHERE id = 2",
        "UPDATE audit_log SET tool = 'get_server_info' WHERE id = 2",
        "DELETE FROM audit_log WHERE id = 2",
    ],
)
def test_a_record_that_was_changed_or_removed_is_found(terminal: Terminal, statement: str) -> None:
    terminal.ok("call", "ping")
    terminal.refusal("create_agent", '{"name": "ada"}')
    terminal.ok("call", "ping")
    tamper(terminal, statement)
    done = terminal.run("audit", "verify")
    assert done.exit_code == 1
    assert "broken at record 2" in done.stdout
    told = terminal.run("audit", "verify", "--json")
    assert told.exit_code == 1
    assert '"broken_at": 2' in told.stdout


def test_records_cut_off_at_the_end_are_missed_by_the_head_that_was_kept(terminal: Terminal) -> None:
    for _ in range(3):
        terminal.ok("call", "ping")
    head = terminal.json("audit", "verify", "--json")["head"]
    assert "intact" in terminal.ok("audit", "verify", "--expect", head)
    tamper(terminal, "DELETE FROM audit_log WHERE id >= 3")
    assert terminal.run("audit", "verify").exit_code == 0
    done = terminal.run("audit", "verify", "--expect", head)
    assert done.exit_code == 1
    assert f"no record has the expected hash {head}" in done.stdout


def test_the_list_can_be_narrowed(terminal_on: Terminal) -> None:
    terminal_on.ok("agents", "create", "ada")
    terminal_on.ok("call", "ping", "--agent", "ada")
    terminal_on.ok("call", "ping")
    assert len(terminal_on.json("audit", "list", "--tool", "corvid_ping", "--json")) == 2
    assert len(terminal_on.json("audit", "list", "--agent", "ada", "--json")) == 1
    assert len(terminal_on.json("audit", "list", "--limit", "1", "--json")) == 1
    assert terminal_on.ok("audit", "list", "--outcome", "timeout") == "No call matches.\n"
    assert "ping" in terminal_on.ok("audit", "list")


def test_an_unknown_agent_is_refused_rather_than_found_silent(terminal: Terminal) -> None:
    assert "there is no agent bob" in terminal.fails("audit", "list", "--agent", "bob")

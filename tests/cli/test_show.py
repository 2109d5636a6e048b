"""How commands answer: drawn tables for a terminal, plain text for the rest, one sentence for a failure."""

import os
import pty
import subprocess
import sys

import pytest

from rookery.cli.failure import known_error
from rookery.cli.show import cell, fields
from rookery.core.errors import Conflict, InternalError, RookeryError
from tests.cli.terminal import LIMIT_S, Terminal


def test_a_terminal_gets_a_drawn_table(terminal: Terminal) -> None:
    near, far = pty.openpty()
    try:
        done = subprocess.run(
            [sys.executable, "-m", "rookery.entry", "agents"],
            env={**terminal.full_environ(), "TERM": "xterm", "COLUMNS": "200"},
            stdin=subprocess.DEVNULL,
            stdout=far,
            stderr=subprocess.PIPE,
            timeout=LIMIT_S,
            check=False,
        )
        shown = os.read(near, 65536).decode()
    finally:
        os.close(near)
        os.close(far)
    assert done.returncode == 0, done.stderr
    assert "─" in shown
    assert "autonomy" in shown


def test_everything_else_gets_aligned_text(terminal: Terminal) -> None:
    lines = terminal.ok("agents").splitlines()
    assert "─" not in "".join(lines)
    assert lines[0].index("permissions") == lines[1].index("default", len("default"))


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "-"),
        (True, "yes"),
        ([], "none"),
        (["a", "b"], "a, b"),
        ("\x1b]0;title\x07", "?]0;title?"),
        ("two\nlines", "two?lines"),
    ],
)
def test_a_value_is_one_harmless_line(value: object, shown: str) -> None:
    assert cell(value) == shown


def test_the_lines_of_a_field_stand_below_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    fields({"id": 1, "last_error": "make: stop\r\n\x1b[2J2 failed\n", "note": ""}, as_json=False)
    assert capsys.readouterr().out.splitlines() == [
        "id          1",
        "last error  make: stop",
        "            ?[2J2 failed",
        "note        ",
    ]


def test_what_a_person_can_mend_is_told_and_a_bug_is_not_hidden() -> None:
    conflict = Conflict("taken", hint="choose another")
    assert known_error(conflict) is conflict
    assert isinstance(known_error(PermissionError(13, "Permission denied", "/nowhere")), RookeryError)
    assert known_error(ValueError("a bug")) is None
    assert known_error(BrokenPipeError()) is None


def test_a_handlers_bug_points_to_where_its_traceback_can_be_seen() -> None:
    told = known_error(InternalError("ping failed unexpectedly", hint="the server's log names request req-1"))
    assert told is not None
    assert "ROOKERY_LOG_LEVEL=debug" in (told.hint or "")

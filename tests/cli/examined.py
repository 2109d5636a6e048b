"""A machine for the doctor to examine: everything is as it should be, until a test breaks something."""

import os
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from rookery.cli.doctor import examine
from rookery.cli.machine import Finding, Machine, this_machine
from tests.cli.terminal import Terminal

MIB = 1024 * 1024
WORDS = "legal winner thank year wave sausage worth useful legal winner thank yellow"


def sound_machine(terminal: Terminal) -> Machine:
    """A machine on which everything is as it should be."""
    terminal.ok("tools")
    environ = {
        **terminal.environ,
        "PATH": os.environ["PATH"],
        "PORT": "0",
        "ROOKERY_MNEMONIC": WORDS,
        "GH_TOKEN": "secret-of-github",
    }
    package = terminal.user / "package"
    package.mkdir()
    return replace(this_machine(environ=environ), sqlite=(3, 51, 3), package=str(package), free=lambda path: 9000 * MIB)


def finding(machine: Machine, check: str) -> Finding:
    (found,) = (found for found in examine(machine) if found.check == check)
    return found


def with_settings(machine: Machine, **changes: Any) -> Machine:
    return replace(machine, settings=replace(machine.settings, **changes))


def with_environ(machine: Machine, **changes: str) -> Machine:
    return replace(machine, environ={**machine.environ, **changes})


def expect(machine: Machine, check: str, state: str, *said: str) -> None:
    found = finding(machine, check)
    assert found.state == state, found
    assert [text for text in said if text not in f"{found.sentence} -> {found.mend}"] == [], found
    assert bool(found.mend) == (state != "ok")


def change(machine: Machine, statement: str, *values: object) -> None:
    with closing(sqlite3.connect(Path(machine.settings.home) / "rookery.db")) as connection, connection:
        connection.execute(statement, values)

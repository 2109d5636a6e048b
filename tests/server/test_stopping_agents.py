"""`rookery up` is told to stop while an agent works: the turn ends with a word, and no process is left."""

import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rookery.app import make_platform
from rookery.lifecycle.session_mark import SESSION_MARK
from rookery.sessions.opening import Opening, open_session
from rookery.sessions.store import SessionRows
from rookery.sessions.writing import kept_after
from rookery.settings import load_settings
from tests.platform_fixtures import Fleet
from tests.server.processes import PATIENCE_S, Server, environment

AGENT = "import time\nprint('begun', flush=True)\ntime.sleep(600)\n"


class House:
    """A home with a server, looked at from outside."""

    def __init__(self, home: Path, **more: str) -> None:
        env = environment(home, None, **more)
        self.platform = make_platform(load_settings(str(home), env))
        self.fleet = Fleet(self.platform)
        self.server = Server(home, env)

    def write(self, work: Callable[[Any], Any]) -> Any:
        return self.platform.database.direct(work, write=True)

    def names(self, session_id: str) -> list[str]:
        kept = self.platform.database.direct(lambda tx: kept_after(tx, "default", session_id, 0))
        return [event.name for event in kept]

    def begin(self, text: str) -> str:
        ways = self.platform.calls.facts["sessions"].ways
        owner = self.fleet.owner
        row = self.write(lambda tx: open_session(tx, self.platform.resolver, ways, owner, Opening()))
        self.write(lambda tx: SessionRows(tx, "default").queue(row.id, text, "owner"))
        return row.id

    def until(self, reached: Callable[[], Any], what: str) -> Any:
        deadline = time.monotonic() + PATIENCE_S
        while not (found := reached()):
            assert time.monotonic() < deadline, f"{what}: {self.server.errors}"
            time.sleep(0.02)
        return found


def marked(session_id: str) -> list[int]:
    """The processes that run for a session."""
    wanted = f"{SESSION_MARK}={session_id}".encode()
    found: list[int] = []
    for name in os.listdir("/proc"):
        if name.isdecimal():
            try:
                environ = Path(f"/proc/{name}/environ").read_bytes()
            except OSError:
                continue
            if wanted in environ.split(b"\0"):
                found.append(int(name))
    return found


@pytest.fixture
def make_house(tmp_path: Path) -> Iterator[Callable[..., House]]:
    made: list[House] = []

    def make(**more: str) -> House:
        home = tmp_path / "home"
        home.mkdir()
        made.append(House(home, **more))
        return made[-1]

    yield make
    for house in made:
        house.server.close()
        house.platform.close()


def test_a_scripted_turn_ends_with_a_word(make_house: Callable[..., House]) -> None:
    house = make_house(ROOKERY_RUNTIME="scripted")
    session_id = house.begin("!say hi\n!wait 600")
    house.until(lambda: "text_delta" in house.names(session_id), "it works")
    assert house.server.stop() == 0
    assert house.names(session_id)[-2:] == ["error", "done"]


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs /proc")
def test_no_program_of_an_agent_is_left(make_house: Callable[..., House], tmp_path: Path) -> None:
    program = tmp_path / "agent.py"
    program.write_text(AGENT, encoding="utf-8")
    house = make_house(ROOKERY_RUNTIME="command", ROOKERY_RUNTIME_COMMAND=f"{sys.executable} {program}")
    session_id = house.begin("go")
    house.until(lambda: marked(session_id), "its program runs")
    assert house.server.stop() == 0
    assert marked(session_id) == []
    assert house.names(session_id).count("done") == 1

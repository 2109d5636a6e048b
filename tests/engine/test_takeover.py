"""Two `rookery up` on one PostgreSQL: one leads, and another takes over when it dies or sleeps."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from tests.server.conftest import Place, plugin

__all__ = ["plugin"]
LIMIT_S = 60.0


class Pair:
    """Two homes on one database, with a server in each."""

    def __init__(self, places: list[Place], engine: sa.Engine) -> None:
        self._engine = engine
        self.servers = [place.server() for place in places]

    @property
    def leader(self) -> dict[str, Any]:
        with self._engine.connect() as connection:
            found = connection.execute(sa.text("SELECT * FROM orchestrator_leaders")).one_or_none()
            return {"term": 0, "holder": "", "ticked_ms": None} if found is None else dict(found._mapping)

    def leads(self, number: int) -> bool:
        return f":{self.servers[number].process.pid}:" in self.leader["holder"]

    def until(self, holds: Callable[[], Any]) -> None:
        deadline = time.monotonic() + LIMIT_S
        while not holds():
            assert time.monotonic() < deadline, self.leader
            time.sleep(0.02)


@pytest.fixture
def pair(plugin: Path, postgres_url: str) -> Iterator[Pair]:
    places = [Place(plugin), Place(plugin)]
    for place in places:
        place.plugin = None
        place.env |= {"ROOKERY_DATABASE": postgres_url, "ROOKERY_TICK_S": "0.2"}
    engine = sa.create_engine(postgres_url)
    try:
        yield Pair(places, engine)
    finally:
        engine.dispose()
        for place in places:
            place.close()


def test_one_of_two_servers_leads_and_the_other_follows_when_it_is_killed(pair: Pair) -> None:
    pair.until(lambda: pair.leader["ticked_ms"])
    first = 0 if pair.leads(0) else 1
    assert pair.leads(first)
    pair.servers[first].kill()
    pair.until(lambda: pair.leads(1 - first))
    assert pair.leader["term"] == 2


def test_a_leader_that_sleeps_is_deposed_and_leads_no_more_when_it_wakes(pair: Pair) -> None:
    pair.until(lambda: pair.leader["ticked_ms"])
    first = 0 if pair.leads(0) else 1
    sleeper = pair.servers[first].process.pid
    os.kill(sleeper, signal.SIGSTOP)
    try:
        pair.until(lambda: pair.leads(1 - first))
    finally:
        os.kill(sleeper, signal.SIGCONT)
    ticked = pair.leader["ticked_ms"]
    pair.until(lambda: "another leads" in pair.servers[first].errors)
    pair.until(lambda: (pair.leader["ticked_ms"] or 0) > (ticked or 0))
    assert pair.leads(1 - first)
    assert pair.leader["term"] == 2


def test_a_server_that_is_stopped_lets_the_other_lead_at_once(pair: Pair) -> None:
    pair.until(lambda: pair.leader["ticked_ms"])
    first = 0 if pair.leads(0) else 1
    assert pair.servers[first].stop() == 0
    pair.until(lambda: pair.leads(1 - first))

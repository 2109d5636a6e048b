"""Who leads: one at a time, for as long as it shows signs of life, and nobody writes for a leader who was deposed."""

import subprocess
import sys
from collections.abc import Callable

import pytest
import sqlalchemy as sa

from rookery.engine.leading import LEASE_MS, Deposed, Leadership, leader
from rookery.engine.tables import orchestrator_leaders
from tests.platform_fixtures import Fleet


class Court:
    """Candidates on one database."""

    def __init__(self, fleet: Fleet) -> None:
        self._database = fleet.platform.database

    def claim(self, candidate: Leadership) -> int | None:
        candidate.term = self._database.direct(candidate.claim, write=True)
        return candidate.term

    def fence(self, candidate: Leadership) -> None:
        self._database.direct(candidate.fence, write=True)

    def resign(self, candidate: Leadership) -> None:
        self._database.direct(candidate.resign, write=True)

    def pass_time(self, ms: int) -> None:
        """As if the lease had been asked for so much earlier."""
        column = orchestrator_leaders.c.until_ms
        earlier = sa.update(orchestrator_leaders).values(until_ms=column - ms)
        self._database.direct(lambda tx: tx.run(earlier), write=True)

    @property
    def leader(self) -> str:
        row = self._database.direct(leader)
        assert row is not None
        return row.holder


@pytest.fixture
def court(database_url: str, make_fleet: Callable[..., Fleet]) -> Court:
    return Court(make_fleet(database_url, extra={}))


def test_a_second_candidate_does_not_lead_while_the_first_is_there(court: Court) -> None:
    first, second = Leadership(), Leadership()
    assert court.claim(first) == 1
    assert court.claim(second) is None
    court.pass_time(LEASE_MS // 2)
    assert court.claim(second) is None
    with pytest.raises(Deposed):
        court.fence(second)
    assert court.leader == first.me


def test_a_leader_that_shows_signs_of_life_keeps_its_term(court: Court) -> None:
    first = Leadership()
    for _ in range(3):
        assert court.claim(first) == 1
        court.pass_time(LEASE_MS // 2)
    court.fence(first)


def test_after_its_lease_another_leads_and_the_first_writes_nothing_more(court: Court) -> None:
    first, second = Leadership(), Leadership()
    court.claim(first)
    court.pass_time(LEASE_MS + 1)
    with pytest.raises(Deposed):
        court.fence(first)
    assert court.claim(second) == 2
    with pytest.raises(Deposed):
        court.fence(first)
    court.fence(second)
    assert court.claim(first) is None


def test_one_that_lost_the_lead_and_has_it_again_cannot_write_with_its_old_term(court: Court) -> None:
    first, second = Leadership(), Leadership()
    court.claim(first)
    court.pass_time(LEASE_MS + 1)
    court.claim(second)
    court.resign(second)
    old = first.term
    assert old == 1
    assert court.claim(first) == 3
    court.fence(first)
    first.term = old
    with pytest.raises(Deposed):
        court.fence(first)


def test_whoever_resigns_is_followed_at_once(court: Court) -> None:
    first, second = Leadership(), Leadership()
    court.claim(first)
    court.resign(first)
    with pytest.raises(Deposed):
        court.fence(first)
    assert court.claim(second) == 2


def test_nobody_resigns_for_another(court: Court) -> None:
    first, second = Leadership(), Leadership()
    court.claim(first)
    court.resign(second)
    court.fence(first)
    assert court.leader == first.me


def test_a_leader_whose_process_is_no_more_is_followed_at_once_if_it_was_one_of_this_machine(court: Court) -> None:
    program = "from rookery.engine.leading import Leadership; print(Leadership().me)"
    printed = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True, timeout=60)
    gone, follower = Leadership(), Leadership()
    gone.me = printed.stdout.strip()
    assert court.claim(gone) == 1
    assert court.claim(follower) == 2


def test_of_a_process_of_another_machine_nobody_says_that_it_is_no_more(court: Court) -> None:
    elsewhere, follower = Leadership(), Leadership()
    elsewhere.me = "another-machine:999999:1:abc"
    assert court.claim(elsewhere) == 1
    assert court.claim(follower) is None

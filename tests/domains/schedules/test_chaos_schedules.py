"""Servers and workers are killed while many schedules are due at once: each due time is executed exactly once."""

import random
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from rookery.db.clock import now_ms
from rookery.db.tx import Tx
from rookery.domains.schedules.planning import EXECUTE, plan
from rookery.domains.schedules.tables import executions, schedules
from tests.domains.schedules.almanac import SELDOM
from tests.jobs.nursery import until
from tests.jobs.programs import Program, Programs
from tests.platform_fixtures import Fleet

SOON_MS = 1000
LIMIT_S = 120
_ENDED = sa.select(sa.func.count()).select_from(executions).where(executions.c.completed_ms.is_not(None))
_DONE = sa.text("SELECT args, state FROM jobs WHERE kind = :kind").columns(args=sa.JSON)


class Calendar:
    """Many schedules, made due together."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._database = fleet.platform.database
        self.planned: list[tuple[str, int]] = []

    async def fill(self, number: int) -> None:
        for each in range(number):
            await self._fleet.call(
                self._fleet.owner,
                "manage_schedule",
                action="create",
                name=f"upkeep {each}",
                cron_expression=SELDOM,
                schedule_actions=[{"type": "memory_maintenance"}],
                approval_policy="auto",
            )

    def due(self) -> None:
        """Let all of them be due in the same second, which is about to come."""

        def work(tx: Tx) -> list[tuple[str, int]]:
            due_ms = (now_ms(tx) + SOON_MS) // 1000 * 1000
            rows = tx.all(sa.select(schedules))
            for number, row in enumerate(rows):
                plan(tx, row, due_ms + number % 1000)
            return [(row.id, due_ms + number % 1000) for number, row in enumerate(rows)]

        self.planned += self._database.direct(work, write=True)

    @property
    def ended(self) -> int:
        return self._database.direct(lambda tx: tx.scalar(_ENDED))

    def wait(self, wanted: int) -> None:
        until(lambda: self.ended >= wanted, f"{wanted} executions have ended", LIMIT_S)

    def check(self) -> None:
        """Each due time has one execution, which has ended well and was done by one job."""
        self.wait(len(self.planned))
        rows: Any = self._database.direct(lambda tx: tx.all(sa.select(executions)))
        assert sorted((row.schedule_id, row.due_ms) for row in rows) == sorted(self.planned)
        assert [(row.status, row.result) for row in rows if row.status != "completed"] == []
        jobs: Any = self._database.direct(lambda tx: tx.all(_DONE, {"kind": EXECUTE}))
        assert Counter(row.state for row in jobs) == {"done": len(rows)}
        assert {row.args["execution_id"] for row in jobs} == {row.id for row in rows}
        counted: Any = self._database.direct(lambda tx: tx.all(sa.select(schedules)))
        rounds = len(self.planned) // len(counted)
        assert {(row.status, row.execution_count, row.failures) for row in counted} == {("active", rounds, 0)}


@pytest.fixture
def calendar(database_url: str, make_fleet: Callable[..., Fleet]) -> Calendar:
    return Calendar(make_fleet(database_url, extra={}))


@pytest.fixture
def programs(calendar: Calendar, database_url: str, tmp_path: Path) -> Iterator[Programs]:
    made = Programs(tmp_path, database_url)
    yield made
    made.close()


def kill_and_replace(calendar: Calendar, kills: int, victims: list[Program], replace: Callable[[], Program]) -> None:
    """Kill one of the victims each time that another part of what is due has been done."""
    dice = random.Random(kills)
    before, wanted = calendar.ended, len(calendar.planned)
    for kill in range(1, kills + 1):
        calendar.wait(before + (wanted - before) * kill // (kills + 1))
        victims.pop(dice.randrange(len(victims))).kill()
        victims.append(replace())


async def fleet_is_killed(
    calendar: Calendar, programs: Programs, *, servers: int, workers: int, due: int, rounds: int, kills: int
) -> None:
    await calendar.fill(due)
    for _ in range(servers):
        programs.server()
    victims = [programs.worker() for _ in range(workers)]
    for program in programs.started:
        program.wait()
    for _ in range(rounds):
        calendar.due()
        kill_and_replace(calendar, kills, victims, programs.worker)
        calendar.wait(len(calendar.planned))
    calendar.check()


async def server_is_killed(calendar: Calendar, programs: Programs, *, due: int, rounds: int, kills: int) -> None:
    await calendar.fill(due)
    victims = [programs.server(home="only").wait()]
    for _ in range(rounds):
        calendar.due()
        kill_and_replace(calendar, kills, victims, lambda: programs.server(home="only"))
        calendar.wait(len(calendar.planned))
    calendar.check()


@pytest.mark.parametrize("database_url", ["postgres"], indirect=True)
async def test_two_servers_and_two_workers_that_are_killed_fire_each_due_time_once(
    calendar: Calendar, programs: Programs
) -> None:
    await fleet_is_killed(calendar, programs, servers=2, workers=2, due=40, rounds=1, kills=2)


@pytest.mark.slow
@pytest.mark.parametrize("database_url", ["postgres"], indirect=True)
async def test_three_servers_and_four_workers_that_are_killed_fire_500_schedules_once_each(
    calendar: Calendar, programs: Programs
) -> None:
    await fleet_is_killed(calendar, programs, servers=3, workers=4, due=500, rounds=3, kills=6)


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_one_process_that_is_killed_and_restarted_fires_each_due_time_once(
    calendar: Calendar, programs: Programs
) -> None:
    await server_is_killed(calendar, programs, due=40, rounds=1, kills=2)


@pytest.mark.slow
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_one_process_that_is_killed_and_restarted_fires_500_schedules_once_each(
    calendar: Calendar, programs: Programs
) -> None:
    await server_is_killed(calendar, programs, due=500, rounds=3, kills=6)

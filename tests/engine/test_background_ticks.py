"""Scans and intakes as the orchestrator runs them by itself: looks of the leader, real jobs, scripted agents."""

import os
from collections.abc import Sequence
from typing import Any

import pytest
import sqlalchemy as sa

from rookery.engine.dispatches import Dispatches
from rookery.engine.leading import Leadership
from rookery.engine.tables import dispatches
from rookery.engine.tick import Report, Tick
from rookery.lifecycle.issue_tables import issues
from tests.engine.background import Background, make_issues, scan_all
from tests.engine.crew import Crew, Started


class Clockwork(Background):
    """A project whose leader looks when it is told to, and whose worker then does what is due."""

    def __init__(self, crew: Crew) -> None:
        super().__init__(crew)
        self._lead = Leadership()
        self._lead.term = crew.write(self._lead.claim)

    async def tick(self) -> Report:
        report = await Tick(self.crew.platform, self._lead).run()
        assert report.failures == []
        await self.crew.work()
        return report

    def history(self) -> list[tuple[str, str, str | None]]:
        rows = self.crew.rows(sa.select(dispatches).order_by(dispatches.c.created_ms, dispatches.c.id))
        return [(row.work, row.state, row.outcome) for row in rows]

    def forget_delays(self) -> None:
        """As if the last attempt had ended long ago."""
        earlier = {name: dispatches.c[name] - 600_000 for name in ("created_ms", "ended_ms")}
        self.crew.change(sa.update(dispatches).values(**earlier))


@pytest.fixture
async def shop(crew: Crew) -> Clockwork:
    shop = Clockwork(crew)
    await shop.open(scan_concepts=["errors", "races"], scan_paths=["*.py"], intake_folder="wishes")

    def as_its_role(started: Started) -> Sequence[str]:
        return scan_all(started) if started.actor.profile == "scanner" else make_issues(started)

    crew.runtime.script = as_its_role
    return shop


async def test_a_project_that_is_not_switched_on_is_neither_scanned_nor_taken_in(shop: Clockwork) -> None:
    shop.commit(a__py="a = 1\n")
    await shop.bring("the export is slow")
    shop.crew.set(enabled=False)
    await shop.tick()
    assert shop.history() == []
    assert shop.states() == ["new"]


async def test_requests_and_files_are_worked_off_and_then_nothing_happens_until_something_is_new(
    shop: Clockwork,
) -> None:
    shop.commit(a__py="a = 1\n", b__py="b = 1\n")
    box = shop.crew.repository / "wishes"
    box.mkdir()
    (box / "a.md").write_text("a dark theme", encoding="utf-8")
    os.utime(box / "a.md", (1, 1))
    await shop.bring("the export is slow")
    for _ in range(6):
        await shop.tick()
    done = ("ended", "succeeded")
    assert sorted(shop.history()) == [("intake", *done), ("intake", *done), ("scan", *done), ("scan", *done)]
    assert shop.states() == ["done", "done"]
    assert len(shop.crew.rows(sa.select(issues))) == 2
    shop.commit(a__py="a = 2\n")
    for _ in range(3):
        await shop.tick()
    assert [work for work, *_ in shop.history()].count("scan") == 4
    assert len(shop.crew.rows(sa.select(issues))) == 2


async def test_a_worker_that_died_is_followed_by_another_attempt_that_makes_nothing_twice(shop: Clockwork) -> None:
    (request,) = await shop.bring("the export is slow")
    await Tick(shop.crew.platform, shop._lead).run()
    (row,) = shop.crew.rows(sa.select(dispatches))

    def lose(tx: Any) -> None:
        store = Dispatches(tx, "default")
        store.begin(row, session=f"dispatch:{row.id}")
        store.end(row.id, "lost", "its worker died")

    shop.crew.write(lose)
    shop.forget_delays()
    await shop.tick()
    await shop.tick()
    assert shop.history() == [("intake", "ended", "lost"), ("intake", "ended", "succeeded")]
    assert [(each.id, each.state) for each in shop.requests()] == [(request, "done")]
    assert len(shop.crew.rows(sa.select(issues))) == 1


async def test_an_agent_that_fails_is_tried_again_after_a_while_and_not_before(shop: Clockwork) -> None:
    shop.crew.play("!fail the model is away")
    shop.commit(a__py="a = 1\n")
    await shop.tick()
    report = await shop.tick()
    assert report.waits["retry"] == 1
    assert shop.history() == [("scan", "ended", "failed")]
    shop.forget_delays()
    shop.crew.runtime.script = scan_all
    await shop.tick()
    assert shop.history() == [("scan", "ended", "failed"), ("scan", "ended", "succeeded")]

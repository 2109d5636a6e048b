"""The server is killed again and again while agents ask and their owner answers, now or days later.

Every question is asked once, every answer is given once, and every agent gets the answer to its own question.
"""

import asyncio
import contextlib
import json
import random
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from rookery.asks.tables import asks
from rookery.core.errors import Conflict
from tests.domains.owner.asker import Journal
from tests.domains.owner.reception import Reception
from tests.platform_fixtures import Fleet
from tests.warm import Started, start

ROOT = Path(__file__).parents[3]
WAITED_HOURS = 71.0
LIMIT_S = 100.0
_OPEN = sa.select(asks.c.id, asks.c.question).where(asks.c.status == "open")
_ASKED = sa.select(sa.func.count()).select_from(asks)


class Chaos:
    """Servers that are killed, and an owner who answers at random."""

    def __init__(self, reception: Reception, url: str, folder: Path, count: int, agents: int) -> None:
        self.reception = reception
        self.given: dict[str, str] = {}
        self.refused = 0
        self._dice = random.Random(count)
        self._command = [url, str(folder / "servers"), str(folder / "journal"), str(count), str(agents)]
        self._command.append(str(max(10, count // 10)))
        self.deadly = -1
        """The question at whose answer the next server dies."""
        self._journal = folder / "journal"
        self._output = folder / "output"
        self._count = count
        self._server: Started | None = None
        self._started = 0

    def start(self) -> None:
        self._started += 1
        with self._output.open("ab") as output:
            command = [sys.executable, "-m", "tests.domains.owner.asker", *self._command, str(self.deadly)]
            self._server = start(command, cwd=ROOT, stdout=output, stderr=output)

    @property
    def up(self) -> bool:
        """Whether the server that was started last is at work."""
        return self._output.read_text().split().count("up") >= self._started

    @property
    def dead(self) -> bool:
        """Whether the server has ended by itself."""
        return self._server is not None and self._server.poll() is not None

    def stop(self) -> None:
        """Let the server do nothing from now on, without its knowing."""
        assert self._server is not None
        self._server.send_signal(signal.SIGSTOP)

    def kill(self) -> None:
        if self._server is not None:
            self._server.kill()
            self._server.wait()

    @property
    def asked(self) -> int:
        return self.reception.rows(_ASKED)[0][0]

    @property
    def answered(self) -> int:
        """How many agents have their answer."""
        if not self._journal.exists():
            return 0
        with contextlib.closing(Journal(str(self._journal))) as journal:
            return len(journal.answers)

    async def answer_some(self, share: float) -> None:
        """Answer some of what is open, each from two places at the same moment."""
        found = self.reception.rows(_OPEN)
        for row in self._dice.sample(list(found), k=round(len(found) * share)):
            await asyncio.gather(*(self._answer(row, place) for place in ("terminal", "phone")))

    async def _answer(self, row: Any, place: str) -> None:
        text = f"{row.question} answered at the {place}"
        try:
            await self.reception.call(self.reception.owner, "answer_ask", ask_id=row.id, answer=text)
        except Conflict:
            self.refused += 1
        else:
            assert row.question not in self.given, "a second answer counted"
            self.given[row.question] = text

    async def until(self, reached: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + LIMIT_S
        while not reached():
            failed = self._server is not None and self._server.poll() not in (None, 0, -signal.SIGKILL)
            assert not failed, f"the server failed: {self._output.read_text()[-2000:]}"
            assert time.monotonic() < deadline, f"{what}: {self._output.read_text()[-2000:]}"
            await asyncio.sleep(0.02)

    async def run(self, kills: int) -> None:
        """Kill the server at random points from the first question to the last answer."""
        self.start()
        for kill in range(1, kills + 1):
            await self.until(lambda: self.up, "the server starts")
            wanted = self._dice.randrange(self._count * (kill - 1) // kills, self._count * kill // kills)
            while len(self.given) < wanted:
                await self.until(lambda: bool(self.reception.rows(_OPEN)), "questions are asked")
                await self.answer_some(self._dice.random())
            # Those who were killed come back at once, so what was handed over was so a moment ago.
            self.reception.pass_hours(WAITED_HOURS / kills, but=("told_ms",))
            # At whatever the server is just doing with what it was told last.
            answering = asyncio.create_task(self.answer_some(self._dice.random()))
            target = len(self.given) + self._dice.randrange(3)
            await self.until(lambda target=target, done=answering.done: len(self.given) >= target or done(), "answers")
            self.kill()
            self.start()
            await answering
        while self.answered < self._count:
            before = self.answered
            await self.answer_some(1.0)
            await self.until(
                lambda before=before: self.answered > before or bool(self.reception.rows(_OPEN)), "answers"
            )

    def check(self) -> None:
        """Nothing was lost, and nothing was done twice."""
        rows = self.reception.rows()
        wanted = {f"question {number}?" for number in range(self._count)}
        assert sorted(row.question for row in rows) == sorted(wanted)
        assert {row.status for row in rows} == {"answered"}
        assert {row.question: row.answer["text"] for row in rows} == self.given
        assert self.refused == self._count
        lines = [json.loads(line) for line in self._journal.read_text().splitlines()]
        got = [(line["number"], line["text"]) for line in lines if line["what"] == "answer"]
        assert sorted(got) == sorted((number, self.given[f"question {number}?"]) for number in range(self._count))


@pytest.fixture
def make_chaos(
    database_url: str, make_fleet: Callable[..., Fleet], tmp_path: Path
) -> Iterator[Callable[[int, int], Chaos]]:
    made: list[Chaos] = []

    def make(count: int, agents: int) -> Chaos:
        reception = Reception(make_fleet(database_url, extra={}, rate_calls_per_minute=0))
        made.append(Chaos(reception, database_url, tmp_path, count, agents))
        return made[-1]

    yield make
    for each in made:
        each.kill()


async def killed(chaos: Chaos, agents: int, kills: int) -> None:
    for number in range(agents):
        await chaos.reception.call(chaos.reception.owner, "create_agent", name=f"agent{number}")
    await chaos.run(kills)
    chaos.check()


async def test_an_answer_is_not_lost_with_the_server_that_was_about_to_hand_it_over(
    make_chaos: Callable[[int, int], Chaos],
) -> None:
    chaos = make_chaos(1, 1)
    await chaos.reception.call(chaos.reception.owner, "create_agent", name="agent0")
    for deadly in (0, -1):
        chaos.deadly = deadly
        chaos.start()
        if deadly == 0:
            await chaos.until(lambda: bool(chaos.reception.rows(_OPEN)), "it asks")
            await chaos.answer_some(1.0)
            # It was noted as handed over, and the agent never heard of it.
            await chaos.until(lambda: chaos.dead, "it dies")
            (row,) = chaos.reception.rows()
            assert (row.status, row.told_ms is not None, chaos.answered) == ("answered", True, 0)
    await chaos.until(lambda: chaos.answered == 1, "the answer arrives")
    chaos.check()


async def test_an_answer_is_not_lost_with_a_server_that_never_saw_it(make_chaos: Callable[[int, int], Chaos]) -> None:
    chaos = make_chaos(1, 1)
    await chaos.reception.call(chaos.reception.owner, "create_agent", name="agent0")
    chaos.start()
    await chaos.until(lambda: bool(chaos.reception.rows(_OPEN)), "it asks")
    chaos.stop()
    await chaos.answer_some(1.0)
    chaos.kill()
    chaos.reception.pass_hours(WAITED_HOURS)
    assert chaos.reception.rows()[0].told_ms is None
    chaos.start()
    await chaos.until(lambda: chaos.answered == 1, "the answer arrives")
    chaos.check()


async def test_thirty_questions_outlive_three_servers(make_chaos: Callable[[int, int], Chaos]) -> None:
    await killed(make_chaos(30, 3), 3, kills=3)


@pytest.mark.slow
async def test_a_thousand_questions_outlive_twenty_servers(make_chaos: Callable[[int, int], Chaos]) -> None:
    await killed(make_chaos(1000, 10), 10, kills=20)

"""The people of a history: they interfere while it is troubled, and answer when it is to come to rest."""

import asyncio
import contextlib
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import sqlalchemy as sa

from rookery.core.actor import Actor
from rookery.core.errors import RookeryError
from rookery.db.tx import Tx
from rookery.domains.tracker.tables import prs
from rookery.identity.binding import Binding
from rookery.lifecycle.issue_tables import issues
from rookery.lifecycle.pauses import Pauses
from rookery.lifecycle.states import FINISHED
from tests.engine.simulation.process import Process
from tests.engine.simulation.temper import Temper

PATIENCE = 4
"""So often a person lets an issue be tried again before they cancel it."""
Row = sa.Row[Any]


class People:
    """Speak to the platform through a process of their own, as the CLI does."""

    def __init__(
        self, desk: Process, rng: random.Random, temper: Temper, project_ids: Sequence[str], slugs: Sequence[str]
    ) -> None:
        self._desk = desk
        self._rng = rng
        self._temper = temper
        self._projects = dict(zip(project_ids, slugs, strict=True))
        self._answers: Counter[str] = Counter()
        self._actors: dict[str, Actor] = {}

    async def interfere(self, until_s: float) -> None:
        """Do something now and then, until the time has come."""
        loop = asyncio.get_running_loop()
        while loop.time() < until_s:
            await asyncio.sleep(self._rng.uniform(2, 30))
            found = await self.issues()
            if found:
                await self._try(self._rng.choice(_DEEDS), self._rng.choice(found))

    async def answer(self) -> None:
        """Give every issue what it waits for from a person."""
        await self.resume_everything()
        for issue in await self.issues():
            if issue.status == "blocked" and issue.blocked_on == "person":
                await self._try(People.reply, issue)
            elif issue.status == "backlog":
                await self._try(People.sort_out, issue)
            elif issue.status == "review":
                await self._try(People.merge, issue)
            elif issue.status == "todo":
                await self._try(People._plan_it, issue)

    async def issues(self) -> list[Row]:
        """Everything that is not finished."""
        wanted = sa.select(issues).where(issues.c.status.not_in(FINISHED)).order_by(issues.c.number, issues.c.id)
        return list(await self._desk.database.read(lambda tx: tx.all(wanted)))

    async def resume_everything(self) -> None:
        def work(tx: Tx) -> None:
            pauses = Pauses(tx, "default")
            for each in pauses.all():
                pauses.resume(each.scope, each.target)

        if await self._desk.database.read(lambda tx: Pauses(tx, "default").all()):
            await self._desk.database.change(work)

    async def call(self, issue: Row, tool: str, **arguments: Any) -> Any:
        """A tool, as the owner in the issue's project."""
        project = self._projects[issue.project_id]
        if project not in self._actors:
            bound = Binding(as_owner=True, project=project)
            resolver = self._desk.platform.resolver
            self._actors[project] = (await self._desk.database.read(lambda tx: resolver.resolve(tx, bound))).actor
        self._desk.log("people", f"{tool} {issue.identifier} {arguments}")
        return await self._desk.platform.calls.call(self._actors[project], tool, arguments)

    async def _try(self, deed: "Callable[[People, Row], Awaitable[None]]", issue: Row) -> None:
        with contextlib.suppress(RookeryError):
            await deed(self, issue)

    async def reply(self, issue: Row) -> None:
        self._answers[issue.id] += 1
        to = "todo" if self._answers[issue.id] <= PATIENCE else "cancelled"
        await self.call(
            issue, "set_issue_status", issue_id=issue.id, status=to, reason="Go on." if to == "todo" else "Enough."
        )

    async def sort_out(self, issue: Row) -> None:
        to = "todo" if self._rng.random() < 0.5 else "cancelled"
        await self.call(issue, "set_issue_status", issue_id=issue.id, status=to)

    async def merge(self, issue: Row) -> None:
        newest = sa.select(prs).where(prs.c.issue_id == issue.id).order_by(prs.c.revision.desc()).limit(1)
        pr = await self._desk.database.read(lambda tx: tx.one(newest))
        if pr is None or pr.status != "approved":
            return
        try:
            await self.call(issue, "merge_pr", issue_id=issue.id)
        except RookeryError as error:
            self._desk.log("people", f"cannot merge {issue.identifier}: {error.message}")
            self._answers[issue.id] += 1
            if self._answers[issue.id] > PATIENCE:
                await self.call(
                    issue, "set_issue_status", issue_id=issue.id, status="cancelled", reason="It cannot be merged."
                )

    async def _plan_it(self, issue: Row) -> None:
        labels = await self._desk.database.read(
            lambda tx: tx.all(sa.text("SELECT label FROM issue_labels WHERE issue_id = :id").bindparams(id=issue.id))
        )
        kept = [row.label for row in labels if row.label != "needs-planning"]
        if len(kept) < len(labels):
            await self.call(issue, "edit_issue", issue_id=issue.id, labels=kept)

    async def cancel(self, issue: Row) -> None:
        if self._rng.random() < 0.3:
            await self.call(issue, "set_issue_status", issue_id=issue.id, status="cancelled", reason="Not wanted.")

    async def take_back(self, issue: Row) -> None:
        if issue.status in ("in_progress", "review"):
            await self.call(issue, "set_issue_status", issue_id=issue.id, status="todo", reason="Again, please.")

    async def edit_phase(self, issue: Row) -> None:
        phase = self._rng.choice(("research", "grooming", "ready"))
        await self.call(issue, "edit_issue", issue_id=issue.id, phase=phase)

    async def edit_labels(self, issue: Row) -> None:
        labels = self._rng.choice(([], ["skip:grooming"], ["skip:research", "skip:architecture"], ["needs-planning"]))
        await self.call(issue, "edit_issue", issue_id=issue.id, labels=labels, priority=self._rng.randrange(1, 5))

    async def pause(self, issue: Row) -> None:
        scope = self._rng.choice(("all", "project", "agent"))
        agent = self._rng.choice(("worker", "judge"))
        target = {"all": None, "project": issue.project_id, "agent": agent}[scope]
        self._desk.log("people", f"pause {scope} {target or ''}")
        await self._desk.database.change(
            lambda tx: Pauses(tx, "default").pause(scope, target, reason="a look", by="owner")
        )
        await asyncio.sleep(self._rng.uniform(1, 90))
        self._desk.log("people", f"resume {scope} {target or ''}")
        await self._desk.database.change(lambda tx: Pauses(tx, "default").resume(scope, target))

    async def create(self, issue: Row) -> None:
        needs = [issue.identifier] if self._rng.random() < 0.3 else []
        await self.call(issue, "create_issue", title="One more", depends_on=needs)


_DEEDS: Sequence[Callable[[People, Row], Awaitable[None]]] = (
    People.reply,
    People.reply,
    People.sort_out,
    People.merge,
    People.merge,
    People.cancel,
    People.take_back,
    People.edit_phase,
    People.edit_labels,
    People.pause,
    People.create,
)

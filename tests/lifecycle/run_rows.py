"""Runs, events and issues, put into a database straight away, as whoever runs agents would."""

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import sqlalchemy as sa

from rookery.core.ids import new_id
from rookery.db.database import Database
from rookery.db.tx import Tx
from rookery.lifecycle.issue_tables import issues
from rookery.lifecycle.run_events import RunEvent
from rookery.lifecycle.run_store import NewRun, Runs


def said(text: str) -> RunEvent:
    return RunEvent("assistant", "text", {"text": text})


def used(tool: str) -> RunEvent:
    return RunEvent("assistant", "tool_use", {"name": tool})


class RunRows:
    """Writes rows of one tenant. Its clock goes on by a millisecond whenever somebody looks at it."""

    def __init__(self, database: Database, tenant: str = "default") -> None:
        self.database = database
        self.tenant = tenant
        self._clock = itertools.count(1_800_000_000_000)

    def runs(self, tx: Tx) -> Runs:
        return Runs(tx, self.tenant, now=lambda: next(self._clock))

    def change(self, work: Callable[[Runs], Any]) -> Any:
        """What `work` gives, committed."""
        return self.database.direct(lambda tx: work(self.runs(tx)), write=True)

    def look(self, work: Callable[[Runs], Any]) -> Any:
        return self.database.direct(lambda tx: work(self.runs(tx)))

    def start(self, project_id: str = "prj-1", **known: Any) -> str:
        """The id of a run that has just started."""
        return self.change(lambda runs: runs.start(NewRun(project_id=project_id, **known))).id

    def append(self, run_id: str, *events: RunEvent, after: int | None = None) -> int:
        return self.change(lambda runs: runs.append(run_id, events, after=after))

    def numbers(self, run_id: str) -> list[int]:
        """The numbers of all events of the run, in the order of their storing."""
        statement = sa.text("SELECT number FROM run_events WHERE run_id = :run ORDER BY seq").bindparams(run=run_id)
        return [row.number for row in self.database.direct(lambda tx: tx.all(statement))]

    def issue(self, identifier: str, project_id: str) -> str:
        """The id of an issue of which nothing else matters."""
        plain = {
            column.name: "" if isinstance(column.type, sa.Text) else 0 for column in issues.c if not column.nullable
        }
        values = plain | {"id": new_id("iss"), "tenant": self.tenant, "project_id": project_id}
        values["identifier"] = identifier
        self.database.direct(lambda tx: tx.run(sa.insert(issues).values(**values)), write=True)
        return str(values["id"])


def texts(events: Sequence[Any]) -> list[str]:
    """What was said in the events, which are rows or dicts."""
    payloads = [event["payload"] if isinstance(event, dict) else event.payload for event in events]
    return [payload["text"] for payload in payloads]

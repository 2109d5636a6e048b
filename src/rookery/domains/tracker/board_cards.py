"""A project's issues as cards in columns. Every column is read from an index, so finished issues cost nothing."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import sqlalchemy as sa

from rookery.core.errors import InvalidParams
from rookery.core.pages import decode_cursor, encode_cursor
from rookery.db.tx import Tx
from rookery.domains.tracker.store import now_ms
from rookery.domains.tracker.tables import issue_changes, issue_deps, issue_labels, prs
from rookery.lifecycle.issue_tables import issues
from rookery.lifecycle.states import FINISHED, ISSUE

Sort = Literal["urgent", "newest", "oldest", "updated"]
Card = dict[str, Any]
Row = sa.Row[Any]
Condition = sa.ColumnElement[bool]

AWAITED = 3
"""Of what an issue waits for, so many are named."""
_i = issues.c
_SHOWN = ("id", "identifier", "title", "status", "blocked_on", "phase", "priority", "size", "rejections", "created_ms",
          "updated_ms", "lease_name", "lease_until_ms")  # fmt: skip
_FAR = 10**15
"""Later than every time in milliseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which issues of a project are on the board, and in which order."""

    project_id: str
    text: str | None = None
    label: str | None = None
    phase: str | None = None
    priority: int | None = None
    agent: str | None = None
    sort: Sort = "urgent"

    def conditions(self) -> list[Condition]:
        """What holds for every issue that is wanted, whatever its status."""
        found = [_i.project_id == self.project_id]
        if self.text is not None:
            named = _i.identifier == self.text.upper()
            found.append(sa.or_(named, _i.title.icontains(self.text, autoescape=True)))
        if self.label is not None:
            ours = (issue_labels.c.project_id == self.project_id, issue_labels.c.label == self.label)
            found.append(_i.id.in_(sa.select(issue_labels.c.issue_id).where(*ours)))
        if self.phase is not None:
            found.append(_i.phase == self.phase)
        if self.priority is not None:
            found.append(_i.priority == self.priority)
        if self.agent is not None:
            found += [_i.lease_name == self.agent, _i.lease_until_ms > now_ms()]
        return found


class BoardCards:
    """Reads cards. Whether the caller may see the project was decided before."""

    def __init__(self, tx: Tx, wanted: Wanted) -> None:
        self.tx = tx
        self.wanted = wanted

    def counts(self) -> dict[str, int]:
        """How many issues there are in each status, with none left out."""
        counted = sa.select(_i.status, sa.func.count().label("number")).where(*self.wanted.conditions())
        found = self.tx.all(counted.group_by(_i.status))
        return dict.fromkeys(ISSUE.states, 0) | {row.status: row.number for row in found}

    def column(self, status: str, limit: int, cursor: str | None = None) -> tuple[list[Row], str | None]:
        """The first of a column, or those after `cursor`, and the cursor of the next."""
        order, descending = self._order(status)
        wanted = _select().where(*self.wanted.conditions(), _in(status))
        wanted = wanted.order_by(*(each.desc() if descending else each for each in order))
        after = _after(cursor, len(order))
        if after is not None:
            last = sa.tuple_(*(sa.literal(part) for part in after))
            wanted = wanted.where(sa.tuple_(*order) < last if descending else sa.tuple_(*order) > last)
        rows = self.tx.all(wanted.limit(limit + 1))
        if len(rows) <= limit:
            return list(rows), None
        end = rows[limit - 1]
        return list(rows[:limit]), encode_cursor(" ".join(str(getattr(end, each.name)) for each in order))

    def named(self, ids: Sequence[str]) -> list[Row]:
        """Those of the issues with these ids that belong on the board."""
        return list(self.tx.all(_select().where(*self.wanted.conditions(), _i.id.in_(ids))))

    def cards(self, rows: Sequence[Row]) -> list[Card]:
        """What is shown of each issue, in the same order. The number of statements does not depend on theirs."""
        ids = [row.id for row in rows]
        if not ids:
            return []
        labels, pulls = self._labels(ids), self._pulls(ids)
        awaited = self._awaited([row.id for row in rows if row.status not in FINISHED])
        reasons = self._reasons([row.id for row in rows if row.status == "blocked"])
        now = now_ms()
        return [
            {
                **{name: getattr(row, name) for name in _SHOWN[:-2]},
                "agent": row.lease_name if row.lease_until_ms is not None and row.lease_until_ms > now else None,
                "labels": labels.get(row.id, []),
                "pr": pulls.get(row.id),
                "waits_for": awaited.get(row.id, []),
                "reason": reasons.get(row.id),
                "order": self._place(row),
            }
            for row in rows
        ]

    def _order(self, status: str) -> tuple[tuple[sa.Column[Any], ...], bool]:
        """By what a column is sorted, and whether the largest comes first. Finished ones: what was changed last."""
        if status in FINISHED or self.wanted.sort == "updated":
            return (_i.updated_ms, _i.id), True
        if self.wanted.sort == "urgent":
            return (_i.priority, _i.created_ms, _i.id), False
        return (_i.created_ms, _i.id), self.wanted.sort == "newest"

    def _place(self, row: Row) -> str:
        """A text that sorts as the cards of a column do."""
        order, descending = self._order(row.status)
        at = getattr(row, order[-2].name)
        before = str(row.priority) if len(order) == 3 else ""
        return f"{before}{_FAR - at if descending else at:016d}"

    def _labels(self, ids: Sequence[str]) -> dict[str, list[str]]:
        wanted = sa.select(issue_labels.c.issue_id, issue_labels.c.label).where(issue_labels.c.issue_id.in_(ids))
        return _gathered(self.tx.all(wanted.order_by(issue_labels.c.label)))

    def _pulls(self, ids: Sequence[str]) -> dict[str, Card]:
        """The newest revision of each issue's pull request."""
        newest = sa.select(prs.c.issue_id, sa.func.max(prs.c.revision).label("revision"))
        newest_of = newest.where(prs.c.issue_id.in_(ids)).group_by(prs.c.issue_id).subquery()
        same = sa.and_(prs.c.issue_id == newest_of.c.issue_id, prs.c.revision == newest_of.c.revision)
        shown = ("revision", "status", "risk_level", "risk_score")
        rows = self.tx.all(sa.select(prs.c.issue_id, *(prs.c[name] for name in shown)).join(newest_of, same))
        return {row.issue_id: {name: getattr(row, name) for name in shown} for row in rows}

    def _awaited(self, ids: Sequence[str]) -> dict[str, list[str]]:
        """What must be done first and is not, by its identifier."""
        if not ids:
            return {}
        needed = sa.select(issue_deps.c.issue_id, _i.identifier).join(issues, _i.id == issue_deps.c.depends_on)
        unmet = (issue_deps.c.issue_id.in_(ids), _i.status != "done")
        found = _gathered(self.tx.all(needed.where(*unmet).order_by(_i.created_ms, _i.id)))
        return {issue: names[:AWAITED] for issue, names in found.items()}

    def _reasons(self, ids: Sequence[str]) -> dict[str, str]:
        """Why each was blocked, as whoever did it has said."""
        if not ids:
            return {}
        c = issue_changes.c
        last = sa.select(sa.func.max(c.seq)).where(c.issue_id.in_(ids), c.field == "status").group_by(c.issue_id)
        rows = self.tx.all(sa.select(c.issue_id, c.why).where(c.seq.in_(last)))
        return {row.issue_id: row.why for row in rows if row.why}


def choices(tx: Tx, project_id: str, most: int = 100) -> tuple[list[str], list[str]]:
    """The labels that are used most, and who holds issues now, to choose from."""
    number = sa.func.count()
    labels = sa.select(issue_labels.c.label).where(issue_labels.c.project_id == project_id)
    labels = labels.group_by(issue_labels.c.label).order_by(number.desc(), issue_labels.c.label).limit(most)
    held = (_i.project_id == project_id, _i.status == "in_progress", _i.lease_until_ms > now_ms())
    agents = sa.select(_i.lease_name).where(*held).distinct().order_by(_i.lease_name).limit(most)
    return [row.label for row in tx.all(labels)], [row.lease_name for row in tx.all(agents)]


def _select() -> sa.Select[Any]:
    return sa.select(*(_i[name] for name in _SHOWN))


def _in(status: str) -> Condition:
    if status not in FINISHED:
        return _i.status == status
    # Spelled out, since SQLite takes an index of finished issues only if the statement itself says they are.
    finished = _i.status.in_([sa.literal_column(f"'{each}'") for each in FINISHED])
    return sa.and_(_i.status == status, finished)


def _gathered(rows: Sequence[Row]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for row in rows:
        key, value = tuple[str, str](row)
        found.setdefault(key, []).append(value)
    return found


def _after(cursor: str | None, parts: int) -> tuple[int | str, ...] | None:
    key = decode_cursor(cursor)
    if key is None:
        return None
    *numbers, last = key.split(" ")
    if len(numbers) != parts - 1 or not all(each.isdecimal() and len(each) < 18 for each in numbers):
        raise InvalidParams("the cursor is not one of ours", hint="start again without a cursor")
    return (*(int(each) for each in numbers), last)

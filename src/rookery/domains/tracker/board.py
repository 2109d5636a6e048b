"""A project's board: its issues by status, as Markdown. What it costs does not grow with the finished issues."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from rookery.db.tx import Tx
from rookery.domains.tracker.markdown_text import blocks, line
from rookery.domains.tracker.store import now_ms
from rookery.lifecycle.issue_tables import issues
from rookery.lifecycle.states import FINISHED, OPEN

COLUMN = 50
FINISHED_SHOWN = 10
_SHOWN = ("identifier", "priority", "phase", "title", "blocked_on", "lease_name", "lease_until_ms")


@dataclass(frozen=True, slots=True)
class Column:
    """One status with its issues. `more` are not shown; None: nobody counted."""

    status: str
    rows: Sequence[sa.Row[Any]]
    more: int | None


def read_board(tx: Tx, project_id: str) -> list[Column]:
    """The columns that have issues, in the order in which an issue passes them."""
    open_columns = [_open(tx, project_id, status) for status in OPEN]
    finished = [Column(status, tx.all(finished_issues(project_id, status)), None) for status in FINISHED]
    return [column for column in (*open_columns, *finished) if column.rows]


def open_issues(project_id: str, status: str) -> sa.Select[Any]:
    """The most urgent of a status, in the order of the index. One more than is shown tells whether there are more."""
    order = (issues.c.priority, issues.c.created_ms, issues.c.id)
    return _issues(project_id, status).order_by(*order).limit(COLUMN + 1)


def finished_issues(project_id: str, status: str) -> sa.Select[Any]:
    """Those that were changed last."""
    # Spelled out, since SQLite takes an index of finished issues only if the statement itself says they are.
    finished = issues.c.status.in_([sa.literal_column(f"'{each}'") for each in FINISHED])
    newest = _issues(project_id, status).where(finished).order_by(issues.c.updated_ms.desc())
    return newest.limit(FINISHED_SHOWN)


def _issues(project_id: str, status: str) -> sa.Select[Any]:
    mine = (issues.c.project_id == project_id, issues.c.status == status)
    return sa.select(*(issues.c[name] for name in _SHOWN)).where(*mine)


def _open(tx: Tx, project_id: str, status: str) -> Column:
    rows = tx.all(open_issues(project_id, status))
    if len(rows) <= COLUMN:
        return Column(status, rows, 0)
    mine = (issues.c.project_id == project_id, issues.c.status == status)
    count = tx.scalar(sa.select(sa.func.count()).select_from(issues).where(*mine))
    return Column(status, rows[:COLUMN], count - COLUMN)


def board_markdown(slug: str, columns: Sequence[Column]) -> str:
    """The board as people and models read it."""
    shown = [_section(column) for column in columns]
    return blocks(f"# Board of {line(slug)}", *(shown or ["No issues yet."])) + "\n"


def _section(column: Column) -> str:
    lines = [_entry(row) for row in column.rows]
    if column.more is None:
        return f"## {column.status} (at most the last {FINISHED_SHOWN})\n\n" + "\n".join(lines)
    if column.more:
        lines.append(f"- and {column.more} more")
    return f"## {column.status} ({len(column.rows) + column.more})\n\n" + "\n".join(lines)


def _entry(row: sa.Row[Any]) -> str:
    held = row.lease_until_ms is not None and row.lease_until_ms > now_ms()
    notes = (
        f"held by {line(row.lease_name)}" if held else "",
        f"waits for {row.blocked_on}" if row.blocked_on is not None else "",
    )
    told = "; ".join(note for note in notes if note)
    start = f"- {row.identifier} · P{row.priority} · phase:{row.phase} · {line(row.title)}"
    return f"{start} ({told})" if told else start

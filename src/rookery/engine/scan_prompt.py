"""What a scanner is told: which files it is given, for what, and what is known of them."""

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from rookery.core.actor import Actor
from rookery.core.errors import Conflict
from rookery.db.tx import Tx
from rookery.domains.tracker.briefs import MATERIAL, call, role_text
from rookery.domains.tracker.coverage_store import Readings
from rookery.domains.tracker.markdown_text import at, blocks, code, labelled, line
from rookery.domains.tracker.project_store import Projects
from rookery.domains.tracker.tables import coverage
from rookery.engine.assigning import session_key
from rookery.engine.tables import ENDED, dispatches
from rookery.lifecycle.issue_tables import issues
from rookery.lifecycle.states import OPEN

Row = sa.Row[Any]
SHOWN_TICKETS = 50
_c = coverage.c


def scan_prompt(tx: Tx, dispatch: Row, actor: Actor) -> str:
    """The text, and from here on the session's records count for the contents that it was given.

    Conflict if the dispatch has ended.
    """
    lives = sa.select(dispatches.c.id).where(dispatches.c.id == dispatch.id, dispatches.c.state != ENDED)
    if tx.one(lives) is None:
        raise Conflict("the scan has ended", hint="the next one is told what is left")
    concept, files = dispatch.payload["concept"], dispatch.payload["files"]
    contents = {file["path"]: file["content"] for file in files}
    reading = (session_key(dispatch.id), dispatch.project_id, dispatch.payload["commit"], contents)
    Readings(tx, dispatch.tenant).give(*reading)
    known = _known(tx, dispatch, list(contents))
    return _text(Projects(tx, actor).settings(dispatch.project_id).slug, concept, known, _tickets(tx, dispatch))


def _known(tx: Tx, dispatch: Row, paths: list[str]) -> dict[str, Row | None]:
    """What was recorded of the files before, by path."""
    mine = (_c.tenant == dispatch.tenant, _c.project_id == dispatch.project_id)
    same = (_c.concept == dispatch.payload["concept"], _c.file_path.in_(paths))
    tickets = sa.and_(issues.c.tenant == _c.tenant, issues.c.id == _c.ticket_id)
    seen = sa.select(coverage, issues.c.identifier, issues.c.status.label("ticket_status"))
    rows = {row.file_path: row for row in tx.all(seen.outerjoin(issues, tickets).where(*mine, *same))}
    return {path: rows.get(path) for path in paths}


def _tickets(tx: Tx, dispatch: Row) -> list[str]:
    """The open issues that scans for this concept have made, newest first."""
    mine = (_c.tenant == dispatch.tenant, _c.project_id == dispatch.project_id)
    named = sa.select(_c.ticket_id).where(*mine, _c.concept == dispatch.payload["concept"], _c.ticket_id.is_not(None))
    still = (issues.c.tenant == dispatch.tenant, issues.c.status.in_(OPEN), issues.c.id.in_(named))
    rows = tx.all(sa.select(issues).where(*still).order_by(issues.c.created_ms.desc()).limit(SHOWN_TICKETS))
    return [f"{row.identifier} · {row.status} · {line(row.title, 200)}" for row in rows]


def _text(project: str, concept: str, known: Mapping[str, Row | None], tickets: list[str]) -> str:
    record = {"file_path": "<path>", "concept": concept, "status": "<covered or has_issues>"}
    return blocks(
        role_text("scanner"),
        MATERIAL,
        f"# The files that you are given, of {line(project)}",
        labelled(f"For the concept {code(concept)}:", (_file(path, row) for path, row in known.items())),
        labelled("Open issues that scans for this concept have made:", tickets),
        "# What to do now",
        "These files were chosen for you, so leave `list_coverage` aside and examine exactly these, each as a whole, "
        "in your folder. What else you read to understand them needs no record. After each file:",
        call("record_coverage", {**record, "notes": "<what you saw, in a sentence>"}),
        "A file with issues also needs `ticket_id`, the identifier of the issue made for it with `create_issue`. "
        "Record every file: one that is left out is given to another scanner.",
    )


def _file(path: str, row: Row | None) -> str:
    if row is None:
        return code(path)
    ticket = f", {row.identifier} ({row.ticket_status})" if row.identifier else ""
    notes = f": {line(row.notes, 200)}" if row.notes else ""
    return f"{code(path)}, changed since it was {row.status.replace('_', ' ')}{ticket}, {at(row.updated_ms)}{notes}"

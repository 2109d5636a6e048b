"""What an intake agent is told: the requests, what is known already, and how to say which issue stands for which."""

import re
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from rookery.core.actor import Actor
from rookery.core.errors import Conflict
from rookery.db.tx import Tx
from rookery.domains.tracker.briefs import MATERIAL, call, role_text
from rookery.domains.tracker.markdown_text import at, blocks, code, labelled, line, quoted
from rookery.domains.tracker.project_store import Projects
from rookery.engine.intake_settling import issues_made, named_in, runs_of
from rookery.engine.intake_store import Requests
from rookery.engine.tables import dispatches
from rookery.lifecycle.issue_tables import issues

Row = sa.Row[Any]
COMPARED = 2_000
SHOWN = 60
"""So many of the newest issues are compared with the requests, and so many of them are shown."""
_WORD = re.compile(r"\w{4,}")


def intake_prompt(tx: Tx, dispatch: Row, actor: Actor) -> str:
    """The text, and from here on the requests are taken. Conflict if none of them waits for this dispatch."""
    held = Requests(tx, dispatch.tenant).take(dispatch, dispatch.payload["requests"])
    if not held:
        raise Conflict("none of the requests waits any more", hint="what is new is another batch")
    made = _made_before(tx, held)
    known = [row for row in _nearest(tx, dispatch, held) if row.id not in {issue.id for issue in made}]
    return _text(Projects(tx, actor).settings(dispatch.project_id).slug, held, known, made)


def _nearest(tx: Tx, dispatch: Row, held: Sequence[Row]) -> list[Row]:
    """The issues that have most words in common with the requests, then the newest; finished ones are among them."""
    mine = (issues.c.tenant == dispatch.tenant, issues.c.project_id == dispatch.project_id)
    columns = (issues.c.id, issues.c.identifier, issues.c.status, issues.c.title)
    newest = sa.select(*columns).where(*mine).order_by(issues.c.created_ms.desc(), issues.c.id.desc())
    words = {word for request in held for word in _words(request.text)}
    rows = list(tx.all(newest.limit(COMPARED)))
    # Sorting keeps the order of those that are alike, so the newest of them stay first.
    rows.sort(key=lambda row: len(words & _words(row.title)), reverse=True)
    return rows[:SHOWN]


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.casefold()))


def _made_before(tx: Tx, held: Sequence[Row]) -> list[Row]:
    """Issues that earlier attempts at these requests made and that name none of them."""
    tenant, project_id = held[0].tenant, held[0].project_id
    wanted = {request.id for request in held}
    since = min(request.created_ms for request in held)
    mine = (dispatches.c.tenant == tenant, dispatches.c.project_id == project_id, dispatches.c.issue_id.is_(None))
    earlier = sa.select(dispatches).where(*mine, dispatches.c.work == "intake", dispatches.c.created_ms >= since)
    rows = [row for row in tx.all(earlier.order_by(dispatches.c.created_ms)) if wanted & set(row.payload["requests"])]
    found = [issue for row in rows for issue in issues_made(tx, tenant, runs_of(tx, row))]
    return [issue for issue in found if not named_in(issue)]


def _text(project: str, held: Sequence[Row], known: Sequence[Row], made: Sequence[Row]) -> str:
    first = held[0].id
    new: dict[str, Any] = {
        "title": "<what will be different>",
        "description": f"<who needs it, what happens now, what should happen, how one can tell>\n\nRequest: {first}",
        "priority": 3,
        "labels": [],
        "depends_on": [],
    }
    return blocks(
        role_text("intake"),
        MATERIAL,
        f"# The requests, for {line(project)}",
        *(_request(request) for request in held),
        "# What is known already",
        labelled("The issues that come nearest; `list_issues` has all:", map(_issue, known)) or "There is no issue.",
        labelled(
            "An earlier attempt at these requests made the following and did not say for which. Do not make them "
            "again: say below for which request each of them stands.",
            map(_issue, made),
        ),
        "# What to do now",
        "For each wish in the requests that is not among them, also not among the finished ones, make an issue that "
        "names its request:",
        call("create_issue", new),
        "The line with the request's id is how people find what became of it. An issue that stands for several "
        "requests names them all. It starts in the backlog, in the first phase of the project; labels that begin with "
        "phase: cannot be given.",
        "End with one line for each request: its id, a colon, and the identifiers of the issues that stand for it, old "
        f"or new. If it needs none, say why instead: `{first}: nothing to do, because …`. A request without an issue "
        "and without such a line is given to another agent.",
    )


def _request(request: Row) -> str:
    came = f"Came {at(request.created_ms)} from {line(request.submitted_by, 100)} ({line(request.source, 100)}):"
    return blocks(f"## {code(request.id)}", came, quoted(request.text))


def _issue(row: Row) -> str:
    return f"{row.identifier} · {row.status} · {line(row.title, 200)}"

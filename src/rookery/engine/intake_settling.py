"""What has become of the requests that an intake agent was given.

The agent makes issues with `create_issue`, and writes the id of the request into each: an issue and what it stands for
are one row, so no crash parts them. For a request that needs no new issue its last words have a line with the id, and
the issue that stands for it already or the reason. What was made without naming a request stands for it if there was
one only. Everything else is tried again, and the next agent is told what was made.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from rookery.db.tx import Tx
from rookery.engine.assigning import session_key
from rookery.engine.intake_store import Requests
from rookery.engine.retrying import MAX_LOST
from rookery.lifecycle.issue_ref import find_issue
from rookery.lifecycle.issue_tables import issues
from rookery.lifecycle.run_tables import agent_runs, run_events

Row = sa.Row[Any]
REQUEST_ID = re.compile(r"req-[0-9a-f]{32}")
MAX_EVENTS = 2_000
MAX_NAMED = 20
"""So many names of issues are looked up in one line of an agent's last words."""
_EDGES = re.compile(r"^[\W_]+|[\W_]+$")
_ISSUE = re.compile(r"\b[A-Za-z][A-Za-z0-9]{1,9}-[0-9]{1,12}\b")
_r, _e = agent_runs.c, run_events.c


@dataclass(frozen=True, slots=True)
class Answer:
    """What the agent said of a request in its last words."""

    text: str
    names: Sequence[str]


def settle_requests(tx: Tx, dispatch: Row) -> None:
    """Note which issues stand for the dispatch's requests, as far as that is on record."""
    store = Requests(tx, dispatch.tenant)
    held = store.held_by(dispatch)
    if not held:
        return
    runs = runs_of(tx, dispatch)
    made = issues_made(tx, dispatch.tenant, runs)
    ended_well = bool(runs) and all(run.status == "succeeded" for run in runs)
    answers = answers_in(last_words(tx, dispatch.tenant, runs)) if ended_well else {}
    for request in held:
        answer = answers.get(request.id)
        standing = [issue.id for issue in made if request.id in named_in(issue)]
        standing += _meant(tx, dispatch, answer)
        if not standing and len(dispatch.payload["requests"]) == 1:
            standing = [issue.id for issue in made]
        if standing or answer is not None:
            store.done(request, list(dict.fromkeys(standing)), answer.text if answer is not None else None)


def return_requests(tx: Tx, dispatch: Row, max_retries: int) -> None:
    """Settle what a dispatch that has ended did, and let the rest wait again, or give it up after the retries."""
    settle_requests(tx, dispatch)
    store = Requests(tx, dispatch.tenant)
    held = store.held_by(dispatch)
    tries = store.tries(dispatch.project_id, held)
    for request in held:
        ends, losses = tries[request.id]
        if ends > max_retries or losses > MAX_LOST:
            why = f": {dispatch.error}" if dispatch.error else ""
            store.give_up(request, f"tried {ends + losses} times; the last attempt ended as {dispatch.outcome}{why}")
        else:
            store.put_back(request)


def runs_of(tx: Tx, dispatch: Row) -> Sequence[Row]:
    """The run of the dispatch's session, also if nobody has noted it there."""
    mine = (_r.tenant == dispatch.tenant, _r.project_id == dispatch.project_id)
    same = (_r.created_ms >= dispatch.created_ms, _r.key == session_key(dispatch.id))
    return tx.all(sa.select(agent_runs).where(*mine, *same))


def issues_made(tx: Tx, tenant: str, runs: Sequence[Row]) -> Sequence[Row]:
    """The issues that were made in the runs, oldest first."""
    mine = (issues.c.tenant == tenant, issues.c.run_id.in_([run.id for run in runs]))
    return tx.all(sa.select(issues).where(*mine).order_by(issues.c.created_ms, issues.c.id)) if runs else ()


def named_in(issue: Row) -> set[str]:
    """The ids of the requests that an issue names."""
    return set(REQUEST_ID.findall(f"{issue.title}\n{issue.description}"))


def last_words(tx: Tx, tenant: str, runs: Sequence[Row]) -> str:
    """What the agent said at the end of its runs, after its last call of a tool."""
    said: list[str] = []
    for run in runs:
        mine = (_e.tenant == tenant, _e.run_id == run.id)
        called = sa.select(sa.func.max(_e.number)).where(*mine, _e.subtype.in_(("tool_use", "tool_result")))
        spoken = sa.or_(_e.subtype == "text", _e.type == "result")
        after = sa.select(_e.type, _e.payload).where(*mine, spoken, _e.number > (tx.scalar(called) or 0))
        for row in tx.all(after.order_by(_e.number).limit(MAX_EVENTS)):
            said.append(
                f"\n{row.payload.get('output') or ''}" if row.type == "result" else row.payload.get("text") or ""
            )
    return "".join(said)


def answers_in(words: str) -> dict[str, Answer]:
    """What is said of each request, the last time that anything is: what follows its id in the line. Pure.

    Of several ids in a row what follows the last of them is said of all; of one at the end of a line what comes before.
    """
    found: dict[str, Answer] = {}
    for line in words.splitlines():
        names = REQUEST_ID.findall(line)
        before, *after = (_EDGES.sub("", part) for part in REQUEST_ID.split(line))
        meant: list[str] = []
        for name, text in zip(names, after, strict=True):
            meant.append(name)
            if text and text.lower() != "and":
                found.update(dict.fromkeys(meant, _answer(text)))
                meant = []
        if before and meant == names:
            found.update(dict.fromkeys(meant, _answer(before)))
    return found


def _answer(text: str) -> Answer:
    return Answer(text, _ISSUE.findall(text)[:MAX_NAMED])


def _meant(tx: Tx, dispatch: Row, answer: Answer | None) -> list[str]:
    """The issues of the project that the answer names."""
    rows = [find_issue(tx, dispatch.tenant, name) for name in (answer.names if answer is not None else ())]
    return [row.id for row in rows if row is not None and row.project_id == dispatch.project_id]

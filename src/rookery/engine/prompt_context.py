"""Reads what is known already and could help an agent: notes of its profile, learnings, and how others fared before."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from rookery.core.actor import Actor
from rookery.core.errors import ConfigurationError
from rookery.db.tx import Tx
from rookery.domains.memory.file_store import GLOBAL, MemoryFiles, Shelf
from rookery.domains.tracker.issue_markdown import Record
from rookery.domains.tracker.learning_store import SHOWN, Learnings
from rookery.domains.tracker.learning_tables import learnings
from rookery.domains.tracker.line_comment_store import LineComments
from rookery.domains.tracker.tables import prs
from rookery.engine.dispatches import Dispatches
from rookery.engine.prompt_sections import Piece, overlap
from rookery.engine.tables import ENDED
from rookery.fulltext.query import Term, terms

log = logging.getLogger("rookery.orchestrator")
Row = sa.Row[Any]
CONVENTION = "convention"
FOUND = 50
"""So many learnings are looked at; budgets leave room for fewer."""
OWN_FIRST = 1_000.0
_CONVENTIONS = (
    sa.select(*(learnings.c[name] for name in SHOWN))
    .where(
        learnings.c.tenant == sa.bindparam("of_tenant"),
        learnings.c.project_id == sa.bindparam("of_project"),
        learnings.c.learning_type == CONVENTION,
    )
    .order_by(learnings.c.verified.desc(), learnings.c.quality_score.desc(), learnings.c.seq.desc())
    .limit(FOUND)
)
_REJECTED = (
    sa.select(prs.c.id, prs.c.revision, prs.c.reason, prs.c.fix_instructions, prs.c.updated_ms.label("created_ms"))
    .where(prs.c.issue_id == sa.bindparam("of_issue"), prs.c.status == "rejected")
    .order_by(prs.c.revision)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What could help, each with its relevance for the work that is about to begin."""

    notes: Sequence[Piece]
    conventions: Sequence[Piece]
    tactics: Sequence[Piece]


def known_of(tx: Tx, actor: Actor, facts: Mapping[str, Any], words: str, own: Sequence[Record] = ()) -> Known:
    """What speaks of these words. `own` are learnings of the issue itself, which come first."""
    looked_for = terms(words)
    found = [*_first(own), *Learnings(tx, actor).search(words, limit=FOUND)]
    general = tx.all(_CONVENTIONS, {"of_tenant": actor.tenant, "of_project": actor.project})
    # What is a convention holds for all work here; what speaks of this work comes before the rest.
    conventions = [each for each in found if each["learning_type"] == CONVENTION]
    conventions += [{**_record(row, SHOWN), "score": row.quality_score / 1_000_000} for row in general]
    tactics = [each for each in found if each["learning_type"] != CONVENTION]
    return Known(
        notes=_notes(tx, actor, facts.get("keyring"), looked_for),
        conventions=_pieces(conventions),
        tactics=_pieces(tactics),
    )


def _first(own: Sequence[Record]) -> list[Record]:
    return [{**each, "identifier": "this issue", "score": OWN_FIRST + at} for at, each in enumerate(own)]


def _pieces(found: Sequence[Record]) -> list[Piece]:
    """Each learning once, however often it was found."""
    once: dict[str, Record] = {}
    for each in found:
        once.setdefault(each["id"], each)
    return [_piece(each) for each in once.values()]


def _piece(learning: Record) -> Piece:
    verified = ", verified" if learning["verified"] else ""
    where = f", from {learning['identifier']}" if learning.get("identifier") else ""
    applies = ", ".join(learning["applies_to"] or ())
    parts = (learning["pattern"], learning["context"], f"Applies to: {applies}" if applies else None)
    return Piece(
        name=learning["id"],
        heading=f"Quality {learning['quality_score']}{verified}{where}",
        text="\n\n".join(filter(None, parts)),
        relevance=learning["score"],
    )


def _notes(tx: Tx, actor: Actor, keyring: Any, looked_for: Sequence[Term]) -> list[Piece]:
    """The memory files of the profile. Those of the project come before the global ones that say as much of the work.

    One that does not open is left out: an agent without it can still work.
    """
    if actor.profile is None:
        return []
    store, pieces = MemoryFiles(tx, keyring), list[Piece]()
    scopes = [("project", actor.project_slug), ("global", GLOBAL)]
    for rank, (scope, slug) in enumerate((scope, slug) for scope, slug in scopes if slug is not None):
        for row in store.of(Shelf(actor.tenant, slug, actor.profile)):
            try:
                text = store.open(row).strip()
            except ConfigurationError as error:
                log.warning("the memory file %s/%s/%s: %s", slug, actor.profile, row.filename, error.message)
                continue
            name, heading = f"memory-file://{scope}/{row.filename}", f"{row.filename} ({scope})"
            relevance = overlap(text, looked_for) - rank / 1_000
            pieces.append(Piece(name=name, heading=heading, text=text, relevance=relevance))
    return [piece for piece in pieces if piece.text]


def rejected_changes(tx: Tx, actor: Actor, issue_id: str) -> list[Record]:
    """What judges said of revisions of the issue's pull request that they rejected, oldest first."""
    shown = ("id", "revision", "reason", "fix_instructions", "created_ms")
    lines = LineComments(tx, actor)
    return [
        {**_record(row, shown), "line_comments": lines.of(row.id)} for row in tx.all(_REJECTED, {"of_issue": issue_id})
    ]


def _record(row: Row, names: Sequence[str]) -> Record:
    return {name: getattr(row, name) for name in names}


def attempt_before(tx: Tx, dispatch: Row) -> Row | None:
    """The attempt at the same work that came to nothing before this one; None if there was none since a success."""
    if dispatch.issue_id is None:
        return None
    same = (dispatch.work, dispatch.phase, dispatch.about)
    for row in Dispatches(tx, dispatch.tenant).of_issue(dispatch.issue_id):
        if row.id == dispatch.id or row.state != ENDED or (row.work, row.phase, row.about) != same:
            continue
        if row.outcome == "succeeded":
            return None
        if row.outcome != "cancelled":
            return row
    return None

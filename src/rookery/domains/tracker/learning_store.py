"""Keeps what agents have learnt, once each, and finds it again."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from rookery.core.actor import Actor
from rookery.core.errors import Conflict
from rookery.core.ids import new_id
from rookery.db.tx import Tx
from rookery.domains.tracker.learning_search import Scope, find
from rookery.domains.tracker.learning_tables import learnings
from rookery.domains.tracker.search import length, lexemes, ranked
from rookery.domains.tracker.store import author, now_ms
from rookery.fulltext.query import terms
from rookery.fulltext.words import is_duplicate, normalized
from rookery.identity.tables import projects
from rookery.lifecycle.issue_tables import issues

FIRST_QUALITY = 50
ENOUGH = 5
"""With fewer learnings that have every word of a query, those that have any of them are shown too."""
SHOWN = ("id", "pattern", "context", "applies_to", "learning_type", "quality_score", "verified")


@dataclass(frozen=True, slots=True, kw_only=True)
class NewLearning:
    """Something that is worth knowing, and where it applies."""

    pattern: str
    context: str | None = None
    applies_to: Sequence[str] = ()
    learning_type: str | None = None


class Learnings:
    """The learnings of the actor's tenant."""

    def __init__(self, tx: Tx, actor: Actor) -> None:
        self.tx = tx
        self.actor = actor

    def add(self, issue: sa.Row[Any], new: NewLearning) -> sa.Row[Any]:
        """Keep a learning of the issue; one that the issue has already, in nearly the same words, is refused.

        The caller holds the issue's row, so that of two alike that come at once the second sees the first.
        """
        text = normalized(new.pattern)
        self._refuse_duplicate(issue, text)
        searched = (new.pattern, new.context, new.applies_to)
        insert = (sqlite if self.tx.dialect == "sqlite" else postgresql).insert(learnings)
        row = self.tx.one(
            insert.values(
                id=new_id("lrn"),
                tenant=issue.tenant,
                project_id=issue.project_id,
                issue_id=issue.id,
                pattern=new.pattern,
                context=new.context,
                applies_to=list(new.applies_to),
                learning_type=new.learning_type,
                quality_score=FIRST_QUALITY,
                verified=False,
                normalized=text,
                digest=hashlib.sha256(text.encode()).hexdigest(),
                words=length(*searched),
                lexemes=lexemes(*searched) if self.tx.dialect == "postgresql" else None,
                author=author(self.actor),
                created_ms=now_ms(),
            )
            .on_conflict_do_nothing()
            .returning(learnings.c.id, learnings.c.quality_score)
        )
        if row is None:
            self._refuse_duplicate(issue, text)
            raise Conflict("this learning has just been added by another", hint="search_learnings shows it")
        return row

    def _refuse_duplicate(self, issue: sa.Row[Any], text: str) -> None:
        known = sa.select(learnings.c.id, learnings.c.pattern, learnings.c.normalized)
        for row in self.tx.all(known.where(learnings.c.issue_id == issue.id).order_by(learnings.c.seq)):
            if is_duplicate(text, row.normalized):
                start = row.pattern if len(row.pattern) <= 120 else f"{row.pattern[:120]}…"
                raise Conflict(
                    f"this repeats {row.id} of {issue.identifier}: {start}",
                    hint="add a learning only for what that one does not say",
                )

    def search(
        self, query: str, *, limit: int, cross_project: bool = False, min_quality: int | None = None
    ) -> list[dict[str, Any]]:
        """The best matches with their scores, in the bound project or in all others in which the actor has a role."""
        scope = Scope(self.actor.tenant, self._projects(cross_project), min_quality)
        best = ranked(find(self.tx, scope, terms(query), ENOUGH), limit)
        visible = sa.and_(issues.c.id == learnings.c.issue_id, issues.c.project_id.not_in(self.actor.closed))
        wanted = sa.select(*(learnings.c[name] for name in SHOWN), issues.c.identifier, learnings.c.seq)
        rows = self.tx.all(
            wanted.outerjoin(issues, visible).where(learnings.c.seq.in_([match.seq for match, _ in best]))
        )
        found = {row.seq: dict(zip((*SHOWN, "identifier"), row, strict=False)) for row in rows}
        return [{**found[match.seq], "score": score} for match, score in best]

    def _projects(self, cross_project: bool) -> list[str]:
        if not cross_project:
            return [self.actor.project] if self.actor.project is not None else []
        hidden = {*self.actor.closed, self.actor.project}
        found = self.tx.all(sa.select(projects.c.id).where(projects.c.tenant == self.actor.tenant))
        return [row.id for row in found if row.id not in hidden]

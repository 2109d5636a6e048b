"""Keeps what was said of single lines of a pull request. It goes to the worker with the revision that it is about."""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from rookery.core.actor import Actor
from rookery.core.errors import Conflict, NotFound
from rookery.core.ids import new_id
from rookery.db.clock import DbNow
from rookery.db.tx import Tx
from rookery.domains.tracker.diff_files import Side
from rookery.domains.tracker.store import author
from rookery.domains.tracker.tables import line_comments

Row = sa.Row[Any]
MOST = 100
"""Comments of one revision: a worker has to read them all."""
LONGEST_CODE = 500
SHOWN = ("id", "path", "side", "line", "code", "content", "author", "created_ms")
_l = line_comments.c
_OF = sa.select(line_comments).where(_l.pr_id == sa.bindparam("wanted")).order_by(_l.path, _l.line, _l.seq)


class LineComments:
    """The comments on lines of pull requests that the actor may see; that was checked when the issue was found."""

    def __init__(self, tx: Tx, actor: Actor) -> None:
        self.tx = tx
        self.actor = actor

    def of(self, pr_id: str) -> list[dict[str, Any]]:
        """Those of one revision, by file and line."""
        return [{name: getattr(row, name) for name in SHOWN} for row in self.rows(pr_id)]

    def rows(self, pr_id: str) -> Sequence[Row]:
        """The same, with who wrote them."""
        return self.tx.all(_OF, {"wanted": pr_id})

    def add(self, pr: Row, *, path: str, side: Side, line: int, code: str, content: str) -> Row:
        """Keep a comment on a revision whose issue's row is locked."""
        written = self.tx.scalar(sa.select(sa.func.count()).select_from(line_comments).where(_l.pr_id == pr.id))
        if written >= MOST:
            raise Conflict(
                f"revision {pr.revision} has {written} comments on its lines, which is the most",
                hint="reject it, or say the rest in a comment on the issue",
            )
        whose = {"tenant": pr.tenant, "issue_id": pr.issue_id, "pr_id": pr.id}
        signed = {"author": author(self.actor), "subject": self.actor.subject, "created_ms": DbNow()}
        at = {"path": path, "side": side, "line": line, "code": code[:LONGEST_CODE]}
        new = sa.insert(line_comments).values(id=new_id("lin"), content=content, **whose, **signed, **at)
        row = self.tx.one(new.returning(*_l))
        assert row is not None
        return row

    def remove(self, pr: Row, comment_id: str) -> None:
        """Take back a comment of one's own."""
        mine = (_l.pr_id == pr.id, _l.id == comment_id, _l.subject == self.actor.subject)
        if not self.tx.run(sa.delete(line_comments).where(*mine)):
            raise NotFound(f"there is no comment {comment_id} of yours", hint="only your own can be removed")

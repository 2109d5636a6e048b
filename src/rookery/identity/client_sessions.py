"""The record of HTTP sessions: who connected with what, since when, and how it ended. Ids of sessions are not in it."""

import sqlalchemy as sa

from rookery.db.migrate import Migration
from rookery.db.schema import metadata, text, whole
from rookery.db.tx import Tx
from rookery.identity.store import now_ms

client_sessions = sa.Table(
    "client_sessions",
    metadata,
    text("id", primary_key=True),
    text("tenant"),
    text("client"),
    text("subject"),
    text("kind"),
    text("agent", null=True),
    text("program", null=True),
    text("revision"),
    text("server"),
    whole("opened_ms"),
    whole("seen_ms"),
    whole("ended_ms", null=True),
    text("ended_by", null=True),
)
sa.Index("client_sessions_open", client_sessions.c.server, client_sessions.c.ended_ms)

MIGRATIONS = (
    Migration(
        1,
        "client sessions",
        [
            "CREATE TABLE client_sessions (id TEXT NOT NULL PRIMARY KEY, tenant TEXT NOT NULL, client TEXT NOT NULL, "
            "subject TEXT NOT NULL, kind TEXT NOT NULL, agent TEXT, program TEXT, revision TEXT NOT NULL, "
            "server TEXT NOT NULL, opened_ms BIGINT NOT NULL, seen_ms BIGINT NOT NULL, ended_ms BIGINT, "
            "ended_by TEXT)",
            "CREATE INDEX client_sessions_open ON client_sessions (server, ended_ms)",
        ],
    ),
)


class ClientSessions:
    """The sessions of one server process. `server` is its name for as long as it runs."""

    def __init__(self, tx: Tx, server: str) -> None:
        self.tx = tx
        self._open = (client_sessions.c.server == server, client_sessions.c.ended_ms.is_(None))
        self._server = server

    def opened(self, **row: str | None) -> None:
        at = now_ms()
        self.tx.run(sa.insert(client_sessions).values(**row, server=self._server, opened_ms=at, seen_ms=at))

    def seen(self, ids: list[str]) -> None:
        """Note that these were in use just now."""
        self.tx.run(sa.update(client_sessions).where(client_sessions.c.id.in_(ids)).values(seen_ms=now_ms()))

    def ended(self, ids: list[str], how: str) -> None:
        """Note the end of these; what has ended stays as it ended."""
        at = now_ms()
        mine = (client_sessions.c.id.in_(ids), client_sessions.c.ended_ms.is_(None))
        self.tx.run(sa.update(client_sessions).where(*mine).values(seen_ms=at, ended_ms=at, ended_by=how))

    def lost(self, before_ms: int) -> None:
        """Note the end of sessions of servers that have not said anything since `before_ms`: they were killed."""
        dead = (client_sessions.c.ended_ms.is_(None), client_sessions.c.seen_ms < before_ms)
        self.tx.run(
            sa.update(client_sessions).where(*dead).values(ended_ms=client_sessions.c.seen_ms, ended_by="server lost")
        )

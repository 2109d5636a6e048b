"""How people sign in to the console: links that work once, and what a browser holds afterwards. Digests are kept."""

import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from rookery.core.ids import new_id
from rookery.db.clock import now_ms
from rookery.db.tx import Tx
from rookery.identity.tables import people
from rookery.identity.tables import sign_in_links as links
from rookery.identity.tables import web_sessions as sessions

LINK_LASTS_MS = 15 * 60_000
SESSION_LASTS_MS = 14 * 86_400_000
SESSION_ENDS_MS = 90 * 86_400_000
"""However much a session is used, it is over after so long."""
SEEN_EVERY_MS = 3_600_000
"""A session that is used is written down, and lasts longer, at most so often."""
MAX_DEVICE = 200
Row = sa.Row[Any]
_there = sa.exists().where(people.c.id == sessions.c.person, people.c.tenant == sessions.c.tenant)


@dataclass(frozen=True, slots=True)
class SignedIn:
    """A live session of a browser, and whose it is."""

    id: str
    tenant: str
    person: str
    stale: bool
    """Whether it has not been written down for a while that it is used."""


def digest(token: str) -> str:
    """What is kept of a token. Found by it, so no time tells how near a guess was."""
    return hashlib.sha256(b"rookery console\0" + token.encode("utf-8", "replace")).hexdigest()


def make_link(tx: Tx, tenant: str, person: str) -> tuple[str, int]:
    """The token of a new link that signs `person` in, once, and when it is over."""
    token, now = secrets.token_urlsafe(32), now_ms(tx)
    row = {"digest": digest(token), "tenant": tenant, "person": person, "created_ms": now}
    tx.run(sa.delete(links).where(links.c.expires_ms < now - SESSION_LASTS_MS))
    tx.run(sa.insert(links).values(**row, expires_ms=now + LINK_LASTS_MS))
    return token, now + LINK_LASTS_MS


def find_link(tx: Tx, token: str) -> tuple[str, str] | None:
    """The tenant and the person that a link would sign in now; None if it is unknown, used or too old."""
    row = tx.one(sa.select(links).where(*_good(token, now_ms(tx))))
    return None if row is None else (row.tenant, row.person)


def use_link(tx: Tx, token: str) -> tuple[str, str] | None:
    """The same, and the link is used up: of two who use it at once one gets None."""
    now = now_ms(tx)
    used = sa.update(links).where(*_good(token, now)).values(used_ms=now).returning(links.c.tenant, links.c.person)
    row = tx.one(used)
    return None if row is None else (row.tenant, row.person)


def _good(token: str, now: int) -> tuple[sa.ColumnElement[bool], ...]:
    there = sa.exists().where(people.c.id == links.c.person, people.c.tenant == links.c.tenant)
    return links.c.digest == digest(token), links.c.used_ms.is_(None), links.c.expires_ms > now, there


def open_session(tx: Tx, tenant: str, person: str, device: str) -> str:
    """The token of a new session, for the browser to keep. `device` is what it calls itself."""
    token, now = secrets.token_urlsafe(32), now_ms(tx)
    values = {"tenant": tenant, "person": person, "device": device[:MAX_DEVICE], "created_ms": now, "seen_ms": now}
    row = {"id": new_id("web"), "digest": digest(token), "expires_ms": now + SESSION_LASTS_MS}
    tx.run(sa.delete(sessions).where(sessions.c.expires_ms < now - SESSION_ENDS_MS))
    tx.run(sa.insert(sessions).values(**values, **row))
    return token


def find_session(tx: Tx, token: str) -> SignedIn | None:
    """The live session of a token, or None. Without its person there is none."""
    now = now_ms(tx)
    row = tx.one(sa.select(sessions).where(sessions.c.digest == digest(token), *_live(now), _there))
    return None if row is None else SignedIn(row.id, row.tenant, row.person, now - row.seen_ms > SEEN_EVERY_MS)


def keep_session(tx: Tx, session_id: str) -> None:
    """Write down that a session is used; it lasts longer then."""
    now = now_ms(tx)
    least = sa.func.min if tx.dialect == "sqlite" else sa.func.least
    until = least(now + SESSION_LASTS_MS, sessions.c.created_ms + SESSION_ENDS_MS)
    tx.run(sa.update(sessions).where(sessions.c.id == session_id, *_live(now)).values(seen_ms=now, expires_ms=until))


def live_sessions(tx: Tx, tenant: str, person: str | None = None) -> Sequence[Row]:
    """The browsers that are signed in, of one person or of all, those used last first."""
    mine = [sessions.c.tenant == tenant, *_live(now_ms(tx)), _there]
    if person is not None:
        mine.append(sessions.c.person == person)
    return tx.all(sa.select(sessions).where(*mine).order_by(sessions.c.seen_ms.desc(), sessions.c.id))


def end_sessions(tx: Tx, tenant: str, *, session: str | None = None, person: str | None = None, but: str = "") -> int:
    """Sign one browser out, or all of a person but one. How many were signed in."""
    now = now_ms(tx)
    chosen = sessions.c.id == session if session is not None else sessions.c.person == person
    ended = sa.update(sessions).where(sessions.c.tenant == tenant, chosen, sessions.c.id != but, *_live(now))
    return tx.run(ended.values(ended_ms=now))


def _live(now: int) -> tuple[sa.ColumnElement[bool], ...]:
    return sessions.c.ended_ms.is_(None), sessions.c.expires_ms > now

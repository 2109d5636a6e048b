"""Opens the session of a client that was started with launch flags, or that brings the key of a session of ours."""

from dataclasses import replace
from typing import TYPE_CHECKING

from rookery.core.actor import Actor
from rookery.core.errors import InvalidParams, Unauthorized
from rookery.db.tx import Tx
from rookery.identity.resolve import Resolved
from rookery.relay import BESIDE_ATTACH, SESSION_KEY
from rookery.server.launch import Flags, binding_from
from rookery.server.session import Session, open_session
from rookery.sessions.store import Row, binding_of, is_unattended, of_pass

if TYPE_CHECKING:
    from rookery.app import Platform

_NEVER = -1
_LIMIT_S = 10


async def open_launched(platform: "Platform", flags: Flags, cwd: str | None) -> Session:
    """The session that the flags describe, of a client that was started in `cwd`; raises what is wrong with them."""
    key = flags.get("attach")
    if key is None:
        return await open_session(platform, binding_from(flags, platform.registry, cwd))
    if not isinstance(key, str):
        raise InvalidParams("--attach needs the key of a session", hint=f"it comes in ${SESSION_KEY}")
    more = sorted(name for name in flags if name not in BESIDE_ATTACH)
    if more:
        raise InvalidParams(
            f"a client that attaches itself to a session cannot choose {more[0]}", hint="the session itself says it"
        )
    return await _attached(platform, key)


class AttachedSession(Session):
    """A connection that acts in a session of ours, with what that session is held to at each of its calls.

    A key counts while its session is at a turn, until the session gets another. A call with any other key is refused.
    """

    __slots__ = ("_key",)

    def __init__(self, platform: "Platform", key: str, row: Row, resolved: Resolved) -> None:
        super().__init__(platform, binding_of(row), resolved, _NEVER)
        self._key = key

    async def actor(self) -> Actor:
        row = await self.platform.database.read(lambda tx: _row_of(tx, self._key), timeout_s=_LIMIT_S)
        binding = binding_of(row)
        if binding != self.binding:
            # Such as another mode, which counts from the next call on.
            self.binding, self._epoch = binding, _NEVER
        found = await super().actor()
        return replace(found, run=row.run_id, unattended=found.unattended or is_unattended(row))


async def _attached(platform: "Platform", key: str) -> AttachedSession:
    def look(tx: Tx) -> tuple[Row, Resolved]:
        row = _row_of(tx, key)
        return row, platform.resolver.resolve(tx, binding_of(row))

    row, resolved = await platform.database.read(look, timeout_s=_LIMIT_S)
    return AttachedSession(platform, key, row, resolved)


def _row_of(tx: Tx, key: str) -> Row:
    row = of_pass(tx, key)
    if row is None:
        raise Unauthorized(
            "the key belongs to no session, or to one that has ended or is at no turn",
            hint="a session gets a new key when its agent starts",
        )
    return row

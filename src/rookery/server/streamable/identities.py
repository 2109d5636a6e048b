"""Sessions by credential: a token is looked up once, not for every request that carries it."""

from collections import OrderedDict
from dataclasses import replace
from typing import TYPE_CHECKING

from rookery.core.errors import RookeryError
from rookery.server.auth import Credential
from rookery.server.hub import Hub
from rookery.server.session import Session, open_session

if TYPE_CHECKING:
    from rookery.app import Platform

KEPT = 4096


class Identities:
    """What the last credentials stand for. Rights that change count at once, since a `Session` looks again itself."""

    def __init__(self, platform: "Platform", hub: Hub) -> None:
        self._platform = platform
        self._hub = hub
        self._known: OrderedDict[str, Session] = OrderedDict()

    async def session(self, credential: Credential) -> Session:
        """The session of a credential, good for this moment; raises if the credential is not."""
        session = self._known.get(credential.key)
        if session is None:
            binding = replace(credential.binding, shared=True)
            session = await open_session(self._platform, binding, self._hub)
            session = self._known.setdefault(credential.key, session)
            if len(self._known) > KEPT:
                self._known.popitem(last=False)
        else:
            self._known.move_to_end(credential.key)
        try:
            await session.actor()
        except RookeryError:
            self._known.pop(credential.key, None)
            raise
        await self._hub.sightings.note(session)
        return session

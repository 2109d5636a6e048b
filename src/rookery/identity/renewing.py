"""Looks the rights of a session up again while it goes on."""

from dataclasses import replace

from rookery.core.actor import Actor
from rookery.db.database import Database
from rookery.identity.binding import binding_again
from rookery.identity.resolve import Resolver


class Renewal:
    """Makes of the actor with which the platform started a session the one that it is now. For each of its calls.

    Whatever was taken from the agent since then is missing: grants, tools, projects, its last credits, and what its
    mode allowed. What the session was held to at its start stays so, also if whoever started it has more by now.
    Callers that are no agents stay as they are.
    """

    def __init__(self, database: Database, resolver: Resolver) -> None:
        self._database = database
        self._resolver = resolver

    async def __call__(self, actor: Actor) -> Actor:
        if actor.kind != "agent":
            return actor
        found = await self._database.read(lambda tx: self._resolver.resolve(tx, binding_again(actor)))
        unattended = actor.unattended or found.actor.unattended
        return replace(found.actor, run=actor.run, phase=actor.phase, unattended=unattended)

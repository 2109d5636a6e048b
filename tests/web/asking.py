"""Asks for the tests of pages: questions, and calls that need a person's yes."""

from typing import Any

import pytest
import sqlalchemy as sa

from rookery.asks.store import Asks, NewAsk, Row
from rookery.asks.tables import asks
from rookery.core.errors import ApprovalRequired
from rookery.identity.people import People
from tests.platform_fixtures import Fleet
from tests.web.guest import Guest


def question(fleet: Fleet, tenant: str = "default", **given: Any) -> str:
    """The id of an open question of the default agent, or of whom `given` names."""
    wanted = {"kind": "question", "agent_id": fleet.actor().agent, "question": "Which one?", "options": ["red", "blue"]}
    new = NewAsk(**{**wanted, **given})
    return fleet.platform.database.direct(lambda tx: Asks(tx, tenant).open(new)[0].id, write=True)


async def approval(fleet: Fleet, key: str = "colour", content: str = "red") -> str:
    """The id of an approval: the default agent wants to remember something, and has to ask for that."""
    await fleet.call(fleet.owner, "update_agent", agent="default", mode="ask")
    with pytest.raises(ApprovalRequired) as refused:
        await fleet.call(fleet.actor(), "save_memory", key=key, content=content)
    return (refused.value.approval or {})["ask_id"]


def row(fleet: Fleet, ask_id: str) -> Row:
    found = fleet.platform.database.direct(lambda tx: tx.one(sa.select(asks).where(asks.c.id == ask_id)))
    assert found is not None
    return found


def looking_on(owner: Guest) -> Guest:
    """Somebody who may look and change nothing."""
    owner.fleet.platform.database.direct(lambda tx: People(tx, "default").add("Vera", "viewer", None), write=True)
    return owner.signed_in("Vera")

"""Memory files at the HTTP door, in both eras of the protocol."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from rookery.identity.store import IdentityStore
from tests.server.streamable import web as kit
from tests.server.streamable.conftest import MakeWeb
from tests.server.streamable.web import MODERN, Web, initialize

TEXT = "marmalade in the cellar"


class Hall:
    """A server whose tokens stand for profiles."""

    def __init__(self, web: Web) -> None:
        self.web = web

    async def token(self, tenant: str = "default", **bound: Any) -> str:
        fleet = self.web.fleet
        fleet.platform.database.direct(lambda tx: IdentityStore(tx, tenant).set_up(), write=True)
        owner = fleet.actor(tenant=tenant, as_owner=True)
        return (await fleet.call(owner, "create_token", name="door", agent="default", **bound)).secret

    async def told(self, token: str, era: str) -> str:
        """The instructions that the holder of this token gets."""
        if era == MODERN:
            answer = await self.web.modern("server/discover", token)
        else:
            answer = await self.web.post(initialize(era), token)
        assert answer.status_code == 200, answer.text
        return answer.json()["result"]["instructions"]


@pytest.fixture
async def hall(database_url: str, make_web: MakeWeb) -> AsyncIterator[Hall]:
    async with make_web(database_url) as web:
        yield Hall(web)


@pytest.mark.parametrize("era", [kit.LEGACY, MODERN])
async def test_a_profile_is_told_its_files_and_nobody_else_is(hall: Hall, era: str) -> None:
    fleet = hall.web.fleet
    await fleet.call(fleet.owner, "create_project", slug="shop")
    mine = await hall.token(agent_type="worker", project="shop")
    assert TEXT not in await hall.told(mine, era)
    actor = fleet.actor(profile="worker", project="shop")
    await fleet.call(actor, "update_memory", scope="project", filename="notes.md", content=TEXT)
    assert TEXT in await hall.told(mine, era)
    others = [
        await hall.token(agent_type="judge", project="shop"),
        await hall.token(agent_type="worker"),
        await hall.token(project="shop"),
        await hall.token("other", agent_type="worker"),
    ]
    for number, token in enumerate(others):
        assert TEXT not in await hall.told(token, era), number


@pytest.mark.parametrize("era", [kit.LEGACY, MODERN])
async def test_tenants_with_a_project_of_the_same_name_do_not_meet(hall: Hall, era: str) -> None:
    ours, theirs = await hall.token(agent_type="worker"), await hall.token("other", agent_type="worker")
    for token, text in ((ours, "our text"), (theirs, "their text")):
        message = {"scope": "global", "filename": "notes.md", "content": text}
        answer = await hall.web.modern("tools/call", token, name="update_memory", arguments=message)
        assert answer.status_code == 200, answer.text
    for token, text, other in ((ours, "our text", "their text"), (theirs, "their text", "our text")):
        told = await hall.told(token, era)
        assert text in told
        assert other not in told

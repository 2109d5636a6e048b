"""An agent that is kept out of the project of its session is refused, and let in again as soon as it may."""

import pytest

from tests.server.streamable.conftest import on_one_database
from tests.server.streamable.web import Web, initialize


async def close(web: Web, *agents: str) -> None:
    await web.fleet.call(web.fleet.owner, "set_project_members", project="default", agents=list(agents))


@pytest.fixture
async def token(web: Web) -> str:
    await web.fleet.call(web.fleet.owner, "create_agent", name="ada")
    return await web.token("ada")


@on_one_database
async def test_every_request_is_refused_for_good_and_not_as_a_session_that_has_ended(web: Web, token: str) -> None:
    session = await web.initialize(token)
    assert (await web.modern("tools/list", token)).status_code == 200
    await close(web, "default")
    for answer in (
        await web.call(session, "ping", token),
        await web.modern("tools/call", token, name="ping", arguments={}),
        await web.post(initialize(), token),
    ):
        assert answer.status_code == 403
        assert "retry-after" not in answer.headers
        error = answer.json()["error"]
        assert error["data"]["code"] == "PERMISSION_DENIED"
        assert error["message"].startswith("there is no project default")


async def test_whoever_is_let_in_again_goes_on_where_it_was(web: Web, token: str) -> None:
    session = await web.initialize(token)
    await close(web)
    assert (await web.call(session, "ping", token)).status_code == 403
    await close(web, "ada")
    assert (await web.call(session, "ping", token)).json()["result"]["structuredContent"]["status"] == "pong"


@on_one_database
async def test_people_come_in_whoever_is_kept_out(web: Web) -> None:
    owner = await web.token(None)
    await close(web)
    assert (await web.modern("tools/list", owner)).status_code == 200

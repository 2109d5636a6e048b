"""Two `rookery up`, each a process with a home of its own, on one PostgreSQL: what one began the other goes on with."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.server.conftest import Place
from tests.server.processes import PATIENCE_S, Server
from tests.server.streamable.web import call, head, initialize, modern
from tests.warm import run

Pair = tuple[Server, Server]


@pytest.fixture
def places(plugin: Path, postgres_url: str) -> Iterator[list[Place]]:
    made = [Place(plugin), Place(plugin)]
    for place in made:
        place.env["ROOKERY_DATABASE"] = postgres_url
    yield made
    for place in made:
        place.close()


@pytest.fixture
def pair(places: list[Place]) -> Pair:
    return places[0].server(), places[1].server()


@pytest.fixture
def token(places: list[Place], pair: Pair) -> str:
    return rookery(places[0], "token", "create", "replicas", "--agent", "default").strip()


def rookery(place: Place, *words: str) -> str:
    command = [sys.executable, "-m", "rookery.entry", *words]
    done = run(command, env=place.environment(), limit_s=PATIENCE_S)
    done.check_returncode()
    return done.stdout


def post(server: Server, message: dict[str, Any], token: str, **headers: str) -> httpx2.Response:
    with httpx2.Client(timeout=PATIENCE_S, trust_env=False, verify=False) as http:
        return http.post(f"http://127.0.0.1:{server.port}/mcp", json=message, headers=head(token, **headers))


def test_a_question_of_one_server_is_answered_to_the_other(pair: Pair, token: str) -> None:
    params: dict[str, Any] = {"name": "ask_person", "arguments": {}, "capabilities": {"elicitation": {}}}
    message, headers = modern("tools/call", **params)
    asked = post(pair[0], message, token, **headers).json()["result"]
    assert asked["resultType"] == "input_required"
    answers = {key: {"action": "accept", "content": {"colour": "blue"}} for key in asked["inputRequests"]}
    message, headers = modern("tools/call", inputResponses=answers, requestState=asked["requestState"], **params)
    assert post(pair[1], message, token, **headers).json()["result"]["structuredContent"] == {"done": "blue"}


def test_a_session_of_one_server_is_unknown_to_the_other(pair: Pair, token: str) -> None:
    session = post(pair[0], initialize(), token).headers["mcp-session-id"]
    assert post(pair[1], call("ping"), token, mcp_session_id=session).status_code == 404
    assert post(pair[0], call("ping"), token, mcp_session_id=session).status_code == 200


def test_a_token_that_was_revoked_at_one_server_is_refused_by_both(places: list[Place], pair: Pair, token: str) -> None:
    message, headers = modern("tools/call", name="ping", arguments={})
    assert [post(server, message, token, **headers).status_code for server in pair] == [200, 200]
    [row] = [line for line in rookery(places[1], "token", "list").splitlines() if "replicas" in line]
    rookery(places[1], "token", "revoke", row.split()[0])
    # The other server hears of it a moment later.
    for server in pair:
        assert any(post(server, message, token, **headers).status_code == 401 for _ in range(500))

"""The MCP inspector's command line: lists and calls tools at both doors, in both protocol eras."""

from pathlib import Path

import pytest

from tests.clients.conftest import ERAS, Served
from tests.clients.programs import Inspected, inspect

LIST = ("--method", "tools/list", "--strict")
PING = ("--method", "tools/call", "--tool-name", "ping")
BROKEN = ("--method", "tools/call", "--tool-name", "get_server_info", "--tool-args-json", '{"include_uptime": 7}')
OK, AUTH_REQUIRED, TOOL_FAILED = 0, 3, 5


def reached(served: Served, token: str | None) -> list[str]:
    header = [] if token is None else ["--header", f"Authorization: Bearer {token}"]
    # Without the last one it would open a browser to sign in.
    return ["--server-url", served.url, "--transport", "http", *header, "--stored-auth-only"]


@pytest.fixture(params=["stdio", "http"])
def target(request: pytest.FixtureRequest, served: Served) -> list[str]:
    return [str(served.home.program()), "stdio"] if request.param == "stdio" else reached(served, served.token)


def names(found: Inspected) -> set[str]:
    return {tool["name"] for tool in found.result["tools"]}


@pytest.mark.parametrize("era", ERAS)
def test_tools_are_listed_with_schemas_that_every_client_takes(target: list[str], user: Path, era: str) -> None:
    found = inspect(user, target, era, *LIST)
    assert found.code == OK, found.complaint
    assert {"ping", "get_server_info"} <= names(found)


@pytest.mark.parametrize("era", ERAS)
def test_a_tool_answers(target: list[str], user: Path, era: str) -> None:
    found = inspect(user, target, era, *PING)
    assert found.code == OK, found.complaint
    assert found.result["structuredContent"]["status"] == "pong"
    # Only answers of 2026-07-28 say which server they are from.
    assert ("_meta" in found.result) == (era == "modern")


@pytest.mark.parametrize("era", ERAS)
def test_a_tool_that_fails_says_so(target: list[str], user: Path, era: str) -> None:
    found = inspect(user, target, era, *BROKEN)
    assert found.code == TOOL_FAILED, found.complaint
    assert "include_uptime" in found.complaint


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("token", [None, "rk_wrong", ""])
def test_without_a_token_that_counts_there_is_no_access(
    served: Served, user: Path, token: str | None, era: str
) -> None:
    found = inspect(user, reached(served, token), era, *PING)
    assert found.code == AUTH_REQUIRED, found.complaint
    assert "pong" not in found.complaint

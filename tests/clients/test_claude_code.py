"""Claude Code's command line with a scripted model: lists and calls tools at both doors, in both protocol eras."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.clients.conftest import ERAS, Served
from tests.clients.programs import Session, converse
from tests.clients.scripted_model import ScriptedModel, Use

# A session with the tools of the server under test and no others.
ALONE = ("--strict-mcp-config", "--bare", "--tools", "", "--allowedTools", "mcp__rookery__*")
ERA: dict[str, dict[str, str]] = {"legacy": {"MCP_PROTOCOL_NEGOTIATION": "legacy"}, "modern": {}}
PING = Use("mcp__rookery__ping", {})


def http_entry(served: Served, token: str | None) -> dict[str, Any]:
    headers = {} if token is None else {"headers": {"Authorization": f"Bearer {token}"}}
    return {"type": "http", "url": served.url, **headers}


def hold(user: Path, era: str, entry: dict[str, Any], *script: Use) -> Session:
    config = user / "mcp.json"
    config.write_text(json.dumps({"mcpServers": {"rookery": entry}}))
    with ScriptedModel(*script) as model:
        return converse(user, model, "--mcp-config", str(config), *ALONE, **ERA[era])


def answered(session: Session) -> None:
    assert session.servers == {"rookery": "connected"}
    assert {"mcp__rookery__ping", "mcp__rookery__get_server_info"} <= session.offered
    assert not any(result.get("is_error") for result in session.tool_results)
    assert json.loads(session.said)["status"] == "pong"


@pytest.mark.parametrize("era", ERAS)
def test_it_uses_tools_over_stdio(served: Served, user: Path, era: str) -> None:
    served.home.heard.unlink(missing_ok=True)
    entry = {"type": "stdio", "command": str(served.home.program()), "args": ["stdio"], "env": {}}
    answered(hold(user, era, entry, PING))
    first = json.loads(served.home.heard.read_text().splitlines()[0])
    assert first["method"] == ("initialize" if era == "legacy" else "server/discover")


@pytest.mark.parametrize("era", ERAS)
def test_it_uses_tools_over_http_with_a_token(served: Served, user: Path, era: str) -> None:
    before = len(served.home.sessions())
    answered(hold(user, era, http_entry(served, served.token), PING))
    opened = [revision for _, revision in served.home.sessions()[before:]]
    assert opened == (["2025-11-25"] if era == "legacy" else [])


@pytest.mark.parametrize("era", ERAS)
def test_it_reads_why_a_call_was_refused(served: Served, user: Path, era: str) -> None:
    wrong = Use("mcp__rookery__get_server_info", {"include_uptime": 7})
    session = hold(user, era, http_entry(served, served.token), wrong)
    assert [result["is_error"] for result in session.tool_results] == [True]
    assert "include_uptime" in session.said


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("token", [None, "rk_wrong"])
def test_without_a_token_that_counts_it_is_not_connected(
    served: Served, user: Path, token: str | None, era: str
) -> None:
    session = hold(user, era, http_entry(served, token), PING)
    assert session.servers["rookery"] != "connected"
    assert session.offered == set()
    assert session.tool_results == []

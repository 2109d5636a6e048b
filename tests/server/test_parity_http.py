"""Over HTTP an identity gets the same lists and the same answers as over stdio, in both eras."""

import sys
from typing import Any

import httpx2
import pytest

from rookery.server.address import running_port
from tests.server.conftest import Place
from tests.server.processes import PATIENCE_S
from tests.server.streamable.web import LEGACY, MODERN, events, head, initialize, modern
from tests.server.test_parity import SCRIPT, steady
from tests.warm import run

LISTS = ("tools/list", "resources/list", "resources/templates/list", "prompts/list")
CALLS = [
    params for _, params in SCRIPT if isinstance(params.get("name"), str) and isinstance(params.get("arguments"), dict)
]
WHO = {"an agent": ["--agent", "default"], "the owner": []}


class HttpClient:
    """A client of one era that sends what it is told to and gives back the message that answers."""

    def __init__(self, http: httpx2.Client, token: str, era: str) -> None:
        self._http, self._token, self._era = http, token, era
        self._extra: dict[str, str] = {}
        if era == LEGACY:
            answer = self._http.post("/mcp", json=initialize(), headers=head(token))
            self._extra = {"mcp_session_id": answer.headers["mcp-session-id"], "mcp_protocol_version": LEGACY}

    def request(self, method: str, **params: Any) -> dict[str, Any]:
        message, extra = {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}, self._extra
        if self._era == MODERN:
            message, extra = modern(method, **params)
        answer = self._http.post("/mcp", json=message, headers=head(self._token, **extra))
        told = events(answer.text)[-1] if answer.headers["content-type"] == "text/event-stream" else answer.json()
        return {key: value for key, value in told.items() if key != "id"}


@pytest.mark.parametrize("who", WHO)
@pytest.mark.parametrize("era", [LEGACY, MODERN])
def test_the_same_identity_is_answered_alike_at_both_doors(shared: Place, who: str, era: str) -> None:
    port = running_port(str(shared.home))
    assert port is not None
    command = [sys.executable, "-m", "rookery.entry", "token", "create", f"{who} {era}", *WHO[who]]
    made = run(command, env=shared.environment(), limit_s=PATIENCE_S)
    made.check_returncode()
    relayed = shared.client(*(WHO[who] or ["--as-owner"]))
    if era == MODERN:
        relayed.be_modern()
    else:
        relayed.initialize(era)
    asked = [(method, {}) for method in LISTS] + [("tools/call", params) for params in CALLS]
    with httpx2.Client(base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE_S, trust_env=False, verify=False) as http:
        over_http = HttpClient(http, made.stdout.strip(), era)
        for method, params in asked:
            told = {key: value for key, value in relayed.request(method, **params).items() if key != "id"}
            assert steady(over_http.request(method, **params)) == steady(told), (method, params)
    assert len(relayed.request("tools/list")["result"]["tools"]) > 1

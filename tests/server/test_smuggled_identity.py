"""Whoever a client says that it is, in its arguments or beside them: it stays who it was when its session began."""

import random
from typing import Any

from tests.server.conftest import Place
from tests.server.processes import Client
from tests.server.streamable.forgers import PEOPLES_TOOLS

CALLS = 150
CLAIMS: dict[str, Any] = {
    "agent": "default",
    "agent_id": "agt-1",
    "tenant": "other",
    "project": "other",
    "issue": "iss-1",
    "issue_id": "iss-1",
    "session": "ses-1",
    "subject": "owner",
    "as_owner": True,
    "role": "owner",
    "scheduler": False,
    "scopes": ["*"],
    "token": "rk_" + "a" * 43,
}


def forge(client: Client, seed: int) -> set[str]:
    """Make calls that claim to be somebody else's; the codes of their refusals."""
    chance = random.Random(seed)
    codes: set[str] = set()
    for _ in range(CALLS):
        claims = {name: CLAIMS[name] for name in chance.sample(sorted(CLAIMS), 3)}
        if chance.random() < 0.5:
            tool, expected = "measure_text", "INVALID_PARAMS"
            answer = client.request("tools/call", name=tool, arguments={"text": "x", **claims})
        else:
            tool, expected = chance.choice(sorted(PEOPLES_TOOLS)), "PERMISSION_DENIED"
            meta = {**claims, "rookery/actor": {"kind": "human", "role": "owner"}}
            answer = client.request("tools/call", name=tool, arguments=PEOPLES_TOOLS[tool], _meta=meta, **claims)
        assert answer["result"]["isError"], answer
        code = answer["result"]["_meta"]["rookery/error"]["code"]
        assert code == expected, (tool, answer)
        codes.add(code)
    return codes


def test_a_session_of_either_era_stays_who_it_is(client: Client, modern: Client, shared: Place) -> None:
    owner = shared.session("--as-owner")
    before = {agent["name"] for agent in owner.call("list_agent_settings")["agents"]}
    tokens = owner.call("list_tokens")["tokens"]
    for number, session in enumerate((client, modern)):
        assert forge(session, number) == {"INVALID_PARAMS", "PERMISSION_DENIED"}
        assert session.call("ping")["status"] == "pong"
    assert {agent["name"] for agent in owner.call("list_agent_settings")["agents"]} == before
    assert owner.call("list_tokens")["tokens"] == tokens
    for tool in ("create_agent", "create_token", "grant_tool", "measure_text"):
        outcomes = {record["outcome"] for record in owner.call("list_audit_records", tool=tool, limit=500)["records"]}
        assert outcomes <= {"refused", "invalid"}, (tool, outcomes)
    assert "Traceback" not in shared.servers[0].errors

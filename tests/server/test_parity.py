"""Direct and relay mode give the same answers to the same requests, whoever asks and in whichever protocol."""

import re
from pathlib import Path
from typing import Any

import pytest

from tests.server.conftest import Place
from tests.server.processes import Client

LEGACY = ("2025-06-18", "2025-11-25")
MODERN = "2026-07-28"
VOLATILE = [
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[.\d]*(Z|\+00:00)"), "TIME"),
    (re.compile(r"\breq-\w+"), "REQUEST"),
    # A session of its own tells the port that is set, the server the one it got.
    (re.compile(r'"port":\d+'), '"port":0'),
]
SCRIPT: list[tuple[str, dict[str, Any]]] = [
    ("tools/list", {}),
    ("tools/call", {"name": "ping", "arguments": {}}),
    ("tools/call", {"name": "ping"}),
    ("tools/call", {"name": "corvid_ping", "arguments": {}}),
    ("tools/call", {"name": "get_server_info", "arguments": {}}),
    ("tools/call", {"name": "get_server_info", "arguments": {"include_uptime": "maybe"}}),
    ("tools/call", {"name": "get_server_info", "arguments": {"colour": "red"}}),
    ("tools/call", {"name": "get_server_info", "arguments": [1]}),
    ("tools/call", {"name": "no_such_tool", "arguments": {}}),
    ("tools/call", {"name": "create_agent", "arguments": {"name": "x y z"}}),
    ("tools/call", {"name": "save_note", "arguments": {"text": "n" * 201}}),
    ("tools/call", {"name": "fail_reading", "arguments": {}}),
    ("tools/call", {"name": "ask_person", "arguments": {}}),
    ("tools/call", {"arguments": {}}),
    ("tools/call", {"name": 5}),
    ("tools/list", {"cursor": 5}),
    ("ping", {}),
    ("server/discover", {}),
    ("resources/list", {}),
    ("prompts/get", {"name": "x"}),
    ("initialize", {"protocolVersion": "2025-11-25"}),
    ("logging/setLevel", {"level": "info"}),
    ("no/such/method", {}),
    ("", {}),
]


def steady(message: Any) -> Any:
    """The message without what differs from one run to the next."""
    if isinstance(message, dict):
        return {key: 0 if key == "port" else steady(value) for key, value in message.items()}
    if isinstance(message, list):
        return [steady(value) for value in message]
    if isinstance(message, str):
        for pattern, replacement in VOLATILE:
            message = pattern.sub(replacement, message)
    return message


def play(client: Client, version: str) -> list[Any]:
    """What the client is told from its first to its last line."""
    told = [client.be_modern() and {}] if version == MODERN else [client.initialize(version)]
    told += [client.request(method, **params) for method, params in SCRIPT]
    code, rest, _ = client.end()
    return steady([*told, client.seen, rest, code])


@pytest.fixture(scope="module")
def scope_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("scope") / "scope.json"
    path.write_text('["corvid_ping", "save_note"]')
    return path


@pytest.mark.parametrize(
    ("who", "version"),
    [
        # Who asks has nothing to do with the older of two handshakes; a start in direct mode takes a second.
        pytest.param(who, version, marks=[pytest.mark.slow] if version == LEGACY[0] and who != "default" else [])
        for who in ("default", "worker", "scope file", "owner", "scheduler")
        for version in (*LEGACY, MODERN)
    ],
)
def test_both_modes_answer_alike(shared: Place, scope_file: Path, who: str, version: str) -> None:
    flags = {
        "default": [],
        "worker": ["--agent-type", "worker"],
        "scope file": ["--tool-scope-file", str(scope_file)],
        "owner": ["--as-owner"],
        "scheduler": ["--scheduler"],
    }[who]
    flags += ["--session-id", "parity"]
    direct, relayed = shared.client(*flags, direct=True), shared.client(*flags)
    assert play(direct, version) == play(relayed, version)


def test_the_modes_are_what_they_are_called(shared: Place) -> None:
    def modules(client: Client) -> bool:
        client.initialize()
        return "sqlite" in Path(f"/proc/{client.process.pid}/maps").read_text()

    assert modules(shared.client(direct=True))
    assert not modules(shared.client())


def told_as(shared: Place, *flags: str) -> dict[str, Any]:
    """What the script answers to a 2025-11-25 client through the relay, by its request."""
    answers = play(shared.client(*flags), "2025-11-25")[1:]
    return {f"{method} {params}": answer for (method, params), answer in zip(SCRIPT, answers, strict=False)}


def test_the_script_is_answered_as_it_should_be(shared: Place) -> None:
    told = told_as(shared)

    def answer(method: str, **params: Any) -> Any:
        return told[f"{method} {params}"]

    def tool(name: str, arguments: Any) -> Any:
        return answer("tools/call", name=name, arguments=arguments)

    assert tool("ping", {})["result"]["structuredContent"] == {"status": "pong", "timestamp": "TIME"}
    assert tool("corvid_ping", {})["result"] == tool("ping", {})["result"]
    for wrong in ({"include_uptime": "maybe"}, {"colour": "red"}):
        refused = tool("get_server_info", wrong)["result"]
        assert refused["isError"]
        assert refused["_meta"]["rookery/error"]["code"] == "INVALID_PARAMS"
        assert next(iter(wrong)) in refused["content"][0]["text"]
    assert tool("no_such_tool", {})["error"]["code"] == -32602
    denied = tool("create_agent", {"name": "x y z"})["result"]
    assert denied["isError"]
    assert (
        denied["_meta"]["rookery/error"].items()
        >= {
            "code": "PERMISSION_DENIED",
            "layer": "principal",
            "hint": "ask the owner to do it",
        }.items()
    )
    assert answer("ping")["result"] == {}
    assert answer("no/such/method")["error"]["code"] == -32601
    assert answer("server/discover")["error"]["code"] == -32601, "it does not exist in this revision"


def test_a_session_of_the_newest_revision_is_told_who_it_is(shared: Place, direct: bool) -> None:
    client = shared.client("--agent-type", "worker", direct=direct).be_modern()
    discovered = client.request("server/discover")["result"]
    assert discovered["supportedVersions"] == [MODERN]
    assert discovered["capabilities"]["tools"] == {"listChanged": True}
    legacy = shared.client("--agent-type", "worker", direct=direct).initialize()["result"]
    assert discovered["instructions"] == legacy["instructions"]
    assert "as worker" in legacy["instructions"]


def test_the_wrong_revision_is_told_the_right_ones(shared: Place, direct: bool) -> None:
    client = shared.client(direct=direct).be_modern()
    assert client.meta is not None
    client.meta["io.modelcontextprotocol/protocolVersion"] = "2031-01-01"
    error = client.request("tools/list")["error"]
    assert (error["code"], error["data"]["supported"]) == (-32022, [MODERN])

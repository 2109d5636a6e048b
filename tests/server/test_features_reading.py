"""Reading resources, having prompts and completing arguments over a real session, in both modes and eras."""

import base64
import json
import time
from typing import Any

import pytest
import sqlalchemy as sa

from tests.server.conftest import Place
from tests.server.feature_place import ERAS, Owner, connect, listed
from tests.server.feature_place import feature_plugin as feature_plugin
from tests.server.feature_place import home as home
from tests.server.feature_place import owner as owner
from tests.server.feature_trials import PIXEL, SECRET
from tests.server.processes import Client

MODERN = "2026-07-28"


@pytest.fixture(scope="module")
def clients(home: Place) -> dict[tuple[str, bool], Client]:
    return {(era, direct): connect(home, era, direct=direct) for era in ERAS for direct in (False, True)}


@pytest.fixture(params=ERAS)
def era(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(params=["relay", "direct"])
def client(request: pytest.FixtureRequest, era: str, clients: dict[tuple[str, bool], Client]) -> Client:
    client = clients[era, request.param == "direct"]
    client.seen.clear()
    return client


def contents(client: Client, uri: str) -> list[dict[str, Any]]:
    return client.request("resources/read", uri=uri)["result"]["contents"]


def test_text_bytes_models_and_several_contents_arrive(client: Client) -> None:
    assert contents(client, "echo://hello%20you") == [
        {"uri": "echo://hello%20you", "mimeType": "text/plain", "text": "hello you"}
    ]
    raw = base64.b64encode(b"a/b c").decode()
    assert contents(client, "files:///a/b%20c") == [
        {"uri": "files:///a/b%20c", "mimeType": "application/octet-stream", "blob": raw}
    ]
    (model,) = contents(client, "model://said")
    assert (model["mimeType"], json.loads(model["text"])) == ("application/json", {"said": "modelled"})
    assert contents(client, "parts://x") == [
        {"uri": "parts://x", "text": "x"},
        {"uri": "parts://blob", "mimeType": "image/png", "blob": "AA=="},
    ]


@pytest.mark.parametrize(
    "trick",
    ["../x", "a/../../x", "%2e%2e/x", "a/%2E%2e/x", "/etc/passwd", "%2fetc/passwd", "a%00b", "a%5C..%5Cb", "%ff", ""],
)
def test_a_path_that_leads_elsewhere_is_not_found(client: Client, era: str, trick: str) -> None:
    uri = f"files:///{trick}"
    error = client.request("resources/read", uri=uri)["error"]
    assert error["data"] == {"uri": uri}
    assert error["code"] == (-32602 if era == MODERN else -32002)


def test_an_address_with_a_value_that_does_not_fit_names_the_field(client: Client) -> None:
    error = client.request("resources/read", uri="echo://" + "x" * 41)["error"]
    assert error["code"] == -32602
    assert "message" in error["message"]
    error = client.request("prompts/get", name="code_review", arguments={"language": "cobol"})["error"]
    assert error["code"] == -32602
    assert "language" in error["message"]
    result = client.request("tools/call", name="echo_message", arguments={"message": 7})["result"]
    assert result["isError"]
    assert result["_meta"]["rookery/error"]["code"] == "INVALID_PARAMS"
    assert "message" in result["content"][0]["text"]


@pytest.mark.parametrize(
    ("how", "code"), [("bug", -32603), ("exit", -32603), ("type", -32070), ("conflict", -32600), ("write", None)]
)
def test_a_handler_that_fails_is_a_protocol_error_without_its_secrets(
    client: Client, how: str, code: int | None
) -> None:
    error = client.request("resources/read", uri=f"broken://{how}")["error"]
    assert code in (None, error["code"])
    assert SECRET not in json.dumps(error)
    assert "Traceback" not in json.dumps(error)
    error = client.request("prompts/get", name="broken_prompt", arguments={"how": how})["error"]
    assert SECRET not in json.dumps(error)
    assert contents(client, "echo://still")[0]["text"] == "still"


def test_a_resource_that_its_handler_does_not_find_is_not_there(client: Client, era: str) -> None:
    error = client.request("resources/read", uri="topic://nothing")["error"]
    assert error == {
        "code": -32602 if era == MODERN else -32002,
        "message": "Resource not found",
        "data": {"uri": "topic://nothing"},
    }


def test_a_prompt_has_messages_and_its_arguments_are_listed(client: Client) -> None:
    prompts = client.request("prompts/list")["result"]["prompts"]
    (review,) = [each for each in prompts if each["name"] == "code_review"]
    assert (review["title"], review["description"]) == ("Code review", "Asks for a review.")
    assert [(each["name"], each["required"]) for each in review["arguments"]] == [
        ("language", True),
        ("strict", False),
        ("depth", False),
        ("focus", False),
    ]
    assert all(each["description"] for each in review["arguments"])
    got = client.request("prompts/get", name="code_review", arguments={"language": "php", "strict": "yes"})["result"]
    first, second = got["messages"]
    assert first["content"]["text"] == "Review this php, args.strict=True, args.depth=1, everything."
    assert (second["role"], second["content"]["type"]) == ("assistant", "resource")
    assert second["content"]["resource"] == {"uri": "echo://hello", "mimeType": "text/plain", "text": "hello"}


def test_the_products_own_resource_and_prompt_are_there(client: Client) -> None:
    (server,) = contents(client, "rookery://server")
    assert json.loads(server["text"])["product"] == "Rookery"
    (message,) = client.request("prompts/get", name="who_am_i")["result"]["messages"]
    assert message["content"]["text"].startswith("You are default, in project default.")


def completed(client: Client, ref: dict[str, str], name: str, value: str, **context: str) -> dict[str, Any]:
    more = {"context": {"arguments": context}} if context else {}
    argument = {"name": name, "value": value}
    return client.request("completion/complete", ref=ref, argument=argument, **more)["result"]["completion"]


REVIEW = {"type": "ref/prompt", "name": "code_review"}


def test_a_choice_is_completed_by_itself(client: Client) -> None:
    assert completed(client, REVIEW, "language", "") == {
        "values": ["python", "php", "rust"],
        "total": 3,
        "hasMore": False,
    }
    assert completed(client, REVIEW, "language", "P")["values"] == ["python", "php"]
    assert completed(client, REVIEW, "strict", "t")["values"] == ["true"]
    assert completed(client, REVIEW, "depth", "")["values"] == []


def test_a_completer_sees_what_was_typed_and_the_other_arguments(client: Client) -> None:
    many = completed(client, REVIEW, "focus", "", language="rust")
    assert (len(many["values"]), many["total"], many["hasMore"]) == (100, 120, True)
    assert completed(client, REVIEW, "focus", "any-11")["values"] == ["any-11"] + [f"any-11{n}" for n in range(10)]


def test_an_argument_that_is_none_is_named(client: Client) -> None:
    answer = client.request("completion/complete", ref=REVIEW, argument={"name": "colour", "value": ""})
    assert answer["error"]["code"] == -32602
    assert "colour" in answer["error"]["message"]


async def test_entries_and_completions_come_from_the_database(client: Client, owner: Owner) -> None:
    names = {f"owl-{client.process.pid}", f"rook-{client.process.pid}"}
    for name in names:
        if name not in listed(client, "resources"):
            await owner.call("add_topic", topic=name)
    entries = {each["uri"]: each for each in client.request("resources/list")["result"]["resources"]}
    for name in names:
        entry = entries[f"topic://{name}"]
        assert (entry["name"], entry["title"], entry["mimeType"]) == (name, name.title(), "text/plain")
        assert entry["description"]
        assert contents(client, f"topic://{name}")[0]["text"] == f"about {name}"
    typed = f"owl-{client.process.pid}"
    assert completed(client, {"type": "ref/resource", "uri": "topic://{topic}"}, "topic", typed)["values"] == [typed]
    assert "unlisted" in listed(client, "resources/templates"), "entries that fail spoil no list"
    assert SECRET not in json.dumps(entries)


def test_a_reading_is_recorded_with_its_ids(home: Place, owner: Owner, era: str) -> None:
    trace = f"00-{'4bf92f35' * 4}-{'00f067aa' * 2}-01"
    client = connect(home, era, "--session-id", f"ses-{era}")
    client.request("resources/read", uri="echo://x", _meta={"traceparent": trace})
    client.request("prompts/get", name="code_review", arguments={"language": "php"}, _meta={"traceparent": "x" * 55})
    query = sa.text("SELECT tool, trace, outcome FROM audit_log WHERE session = :session")
    bound = query.bindparams(session=f"ses-{era}")
    rows = owner.platform.database.direct(lambda tx: tx.all(bound))
    told = {row.tool: (row.trace, row.outcome) for row in rows}
    assert told == {"resource:echo": (trace, "allowed"), "prompt:code_review": (None, "allowed")}


def test_a_failure_is_logged_with_its_operation(home: Place) -> None:
    client = connect(home, "2025-11-25", "--session-id", "ses-logged")
    client.request("resources/read", uri="broken://bug")
    lines = [json.loads(line) for line in home.servers[0].errors.splitlines()]
    (line,) = [each for each in lines if each.get("session") == "ses-logged" and "failed" in each["message"]]
    assert line["operation"] == "resources/read resource:broken"
    assert SECRET not in str(line)


def test_a_result_may_bring_its_own_blocks(client: Client) -> None:
    result = client.request("tools/call", name="show_everything", arguments={"message": "x"})["result"]
    assert result["structuredContent"] == {"said": "x"}
    text, image, audio, embedded, raw, link = result["content"]
    assert text == {"type": "text", "text": "**x**"}
    assert image == {"type": "image", "data": base64.b64encode(PIXEL).decode(), "mimeType": "image/png"}
    assert audio == {"type": "audio", "data": base64.b64encode(b"RIFF").decode(), "mimeType": "audio/wav"}
    assert embedded["resource"] == {"uri": "echo://hello", "mimeType": "text/plain", "text": "hello"}
    assert raw["resource"]["blob"] == base64.b64encode(b"\x00\x01").decode()
    assert (link["type"], link["uri"], link["name"]) == ("resource_link", "echo://hello", "hello")


def test_a_header_that_a_field_asks_for_stays_in_the_schema(client: Client) -> None:
    (tool,) = [each for each in client.request("tools/list")["result"]["tools"] if each["name"] == "shout"]
    fields = tool["inputSchema"]["properties"]
    assert fields["message"]["x-mcp-header"] == "Message"
    assert fields["region"] == {"type": "string", "description": "Where.", "x-mcp-header": "Region"}


def test_the_newest_revision_may_keep_lists_for_a_moment_and_for_itself(
    clients: dict[tuple[str, bool], Client],
) -> None:
    client = clients[MODERN, False]
    for method in ("tools/list", "prompts/list", "resources/list", "resources/templates/list"):
        result = client.request(method)["result"]
        assert (result["cacheScope"], 0 < result["ttlMs"] <= 60_000) == ("private", True)
    result = client.request("resources/read", uri="echo://x")["result"]
    assert (result["cacheScope"], result["ttlMs"]) == ("private", 0)


def test_a_handler_knows_its_client(client: Client, era: str) -> None:
    said = client.call("describe_client")["said"]
    assert said == (
        f"ClientInfo(name='test', version='1', protocol='{era}', elicitation=False, sampling=False, roots=False)"
    )


def outcomes(owner: Owner, session: str) -> list[str]:
    query = sa.text("SELECT outcome FROM audit_log WHERE session = :session ORDER BY id").bindparams(session=session)
    return [row.outcome for row in owner.platform.database.direct(lambda tx: tx.all(query))]


def test_a_reading_reports_progress_and_has_its_time(home: Place, owner: Owner, era: str) -> None:
    session = f"ses-late-{era}"
    client = connect(home, era, "--session-id", session)
    error = client.request("resources/read", uri="waiting://x", _meta={"progressToken": 7})["error"]
    assert error["data"]["code"] == "TIMEOUT"
    (report,) = client.seen
    assert (report["method"], report["params"]["message"]) == ("notifications/progress", "half")
    assert outcomes(owner, session) == ["intent", "timeout"]


def test_a_reading_that_is_cancelled_ends(home: Place, owner: Owner, era: str) -> None:
    session = f"ses-cancelled-{era}"
    client = connect(home, era, "--session-id", session)
    request = client.ask("resources/read", uri="endless://x", _meta={"progressToken": 7})
    client.until("notifications/progress")
    client.notify("notifications/cancelled", requestId=request)
    deadline = time.monotonic() + 10
    while outcomes(owner, session) != ["intent", "cancelled"]:
        assert time.monotonic() < deadline
    assert contents(client, "echo://still")[0]["text"] == "still"

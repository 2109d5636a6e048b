"""Programs and the console steer sessions over HTTP, as whoever their token says."""

import asyncio
from typing import Any

import pytest

from rookery.asks.store import Asks, NewAsk
from rookery.server.api.admission import MAX_BODY
from tests.jobs.working import running_worker
from tests.server.api.conftest import LIMIT_S, Site, until

pytestmark = pytest.mark.anyio
OPERATIONS = [
    ("GET", "/api/sessions"),
    ("POST", "/api/sessions"),
    ("GET", "/api/sessions/ses-1"),
    ("PATCH", "/api/sessions/ses-1"),
    ("DELETE", "/api/sessions/ses-1"),
    ("POST", "/api/sessions/ses-1/messages"),
    ("POST", "/api/sessions/ses-1/interrupt"),
    ("GET", "/api/sessions/ses-1/events"),
    ("POST", "/api/sessions/ses-1/approve"),
    ("POST", "/api/sessions/ses-1/deny"),
    ("POST", "/api/sessions/ses-1/answer"),
    ("GET", "/api/session-stats"),
    ("GET", "/api/asks"),
    ("GET", "/api/transcripts"),
    ("GET", "/api/transcripts/x"),
]


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
async def test_nothing_is_told_to_whoever_has_no_token(site: Site, method: str, path: str) -> None:
    async with site.client() as stranger, site.client("rk_" + "x" * 43) as liar:
        for client in (stranger, liar):
            answer = await client.request(method, path, json={} if method in ("POST", "PATCH") else None)
            assert answer.status_code == 401
            assert answer.headers["www-authenticate"].startswith("Bearer")
            assert answer.json()["error"]["code"] == "UNAUTHORIZED"


async def test_an_agent_opens_steers_and_answers_nothing(site: Site) -> None:
    async with site.client(site.token()) as owner, site.client(site.token(agent="default")) as agent:
        session = (await owner.post("/api/sessions", json={"message": "!say hi"})).json()["session"]["id"]
        for method, path, body in (
            ("POST", "/api/sessions", {}),
            ("PATCH", f"/api/sessions/{session}", {"mode": "autonomy"}),
            ("DELETE", f"/api/sessions/{session}", None),
            ("POST", f"/api/sessions/{session}/messages", {"text": "!say mine"}),
            ("POST", f"/api/sessions/{session}/interrupt", None),
            ("POST", f"/api/sessions/{session}/approve", {"ask_id": "1" * 32}),
        ):
            answer = await agent.request(method, path, json=body)
            assert answer.status_code == 403, (path, answer.text)


async def test_what_is_not_there_is_said_so(site: Site) -> None:
    async with site.client(site.token()) as owner:
        for method, path, body in (
            ("GET", "/api/sessions/ses-none", None),
            ("GET", "/api/sessions/ses-none/events", None),
            ("PATCH", "/api/sessions/ses-none", {"mode": "ask"}),
            ("POST", "/api/sessions/ses-none/messages", {"text": "x"}),
            ("POST", "/api/sessions/ses-none/interrupt", None),
            ("DELETE", "/api/sessions/ses-none", None),
            ("POST", "/api/sessions/ses-none/approve", {"ask_id": "0" * 32}),
        ):
            answer = await owner.request(method, path, json=body)
            assert answer.status_code == 404, (path, answer.text)
            assert answer.json()["error"]["message"]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"[]", 400),
        (b"{", 400),
        (b'{"text": 1}', 400),
        (b'{"text": ""}', 400),
        (b'{"text": "x", "session_id": "ses-other"}', 202),
        (b'{"text": "x", "as_owner": true}', 400),
        (b'{"text": "' + b"x" * 1_000_001 + b'"}', 400),
        (b"x" * (MAX_BODY + 1), 413),
        (b'{"text": "' + b"y" * 10_000_000 + b'"}', 413),
    ],
)
async def test_bad_messages_are_told_as_such(site: Site, body: bytes, status: int) -> None:
    async with site.client(site.token()) as owner:
        session = (await owner.post("/api/sessions", json={})).json()["session"]["id"]
        answer = await owner.post(f"/api/sessions/{session}/messages", content=body)
        assert answer.status_code == status, answer.text[:300]
        if status == 202:
            # The address says which session is meant, whatever the body says.
            assert answer.json()["session_id"] == session


async def test_a_folder_outside_the_roots_is_refused(site: Site) -> None:
    async with site.client(site.token()) as owner:
        answer = await owner.post("/api/sessions", json={"cwd": "/"})
        assert answer.status_code == 403
        assert "outside the folders" in answer.json()["error"]["message"]


async def test_a_session_from_its_start_to_its_end(site: Site) -> None:
    async with site.client(site.token()) as owner, running_worker(site.fleet.platform):
        made = await owner.post("/api/sessions", json={"message": "!say hello", "title": "first"})
        assert made.status_code == 201
        session = made.json()["session"]["id"]
        seen = await until(owner, session, "done")
        assert [event.name for event in seen][:2] == ["snapshot", "turn_input"]
        assert seen[-1].data["reason"] == "completed"
        assert "hello" in seen[-1].data["output"]
        sent = await owner.post(f"/api/sessions/{session}/messages", json={"text": "!say again", "message_id": "m-1"})
        assert (sent.status_code, sent.json()["message_id"]) == (202, "m-1")
        again = await until(owner, session, "done", seen[-1].id)
        assert again[1].data["message_id"] == "m-1"
        shown = (await owner.get(f"/api/sessions/{session}")).json()
        assert (shown["title"], shown["turns"] >= 2) == ("first", True)
        assert (await owner.patch(f"/api/sessions/{session}", json={"mode": "ask"})).json()["mode"] == "ask"
        listed = (await owner.get("/api/sessions", params={"limit": 5})).json()["sessions"]
        assert [each["id"] for each in listed] == [session]
        assert (await owner.get("/api/session-stats")).status_code == 200
        assert (await owner.delete(f"/api/sessions/{session}")).json()["state"] == "ended"
        late = await owner.post(f"/api/sessions/{session}/messages", json={"text": "x"})
        assert (late.status_code, late.json()["error"]["code"]) == (409, "CONFLICT")


async def test_a_turn_is_interrupted(site: Site) -> None:
    async with site.client(site.token()) as owner, running_worker(site.fleet.platform):
        made = await owner.post("/api/sessions", json={"message": "!say one\n!wait 600\n!say two"})
        session = made.json()["session"]["id"]
        await until(owner, session, "text_delta")
        assert (await owner.post(f"/api/sessions/{session}/interrupt")).status_code == 202
        assert (await until(owner, session, "done"))[-1].data["reason"] == "interrupted"


async def asked(owner: Any, session: str, last: str | None = None) -> dict[str, Any]:
    return (await until(owner, session, "approval_required", last))[-1].data


async def test_a_person_approves_denies_and_nobody_twice(site: Site) -> None:
    call = '!call save_memory {"key": "%s", "content": "x"}'
    async with site.client(site.token()) as owner, running_worker(site.fleet.platform):
        body = {"mode": "ask", "message": "\n".join([call % "one", call % "two"])}
        session = (await owner.post("/api/sessions", json=body)).json()["session"]["id"]
        other = (await owner.post("/api/sessions", json={})).json()["session"]["id"]
        first = await asked(owner, session)
        assert (first["tool"], first["input"]["key"]) == ("mcp__rookery__save_memory", "one")
        wrong = await owner.post(f"/api/sessions/{other}/approve", json={"ask_id": first["ask_id"]})
        assert wrong.status_code == 404
        done = await owner.post(f"/api/sessions/{session}/approve", json={"ask_id": first["ask_id"]})
        assert done.status_code == 200, done.text
        twice = await owner.post(f"/api/sessions/{session}/deny", json={"ask_id": first["ask_id"]})
        assert twice.status_code == 409
        async with asyncio.timeout(LIMIT_S):
            while not (open_asks := (await owner.get("/api/asks")).json()["asks"]):
                await asyncio.sleep(0.02)
        refused = {"ask_id": open_asks[0]["id"], "reason": "not this one"}
        assert (await owner.post(f"/api/sessions/{session}/deny", json=refused)).status_code == 200
        seen = await until(owner, session, "done")
        resolved = [event.data["how"] for event in seen if event.name == "interaction_resolved"]
        assert resolved == ["approved", "denied"]
        results = [event.data for event in seen if event.name == "tool_result"]
        assert [result["is_error"] for result in results] == [False, True]
        assert "not this one" in results[1]["text"]


async def test_the_description_names_every_operation(site: Site) -> None:
    async with site.client() as anybody:
        told = (await anybody.get("/api/openapi.json")).json()
    assert told["openapi"].startswith("3.1")
    named = {(method.upper(), path) for path, ways in told["paths"].items() for method in ways}
    for method, path in OPERATIONS:
        wanted = path.replace("ses-1", "{session_id}").replace("/transcripts/x", "/transcripts/{transcript_id}")
        assert (method, wanted) in named
    references = [part for part in str(told).split("'") if part.startswith("#/components/schemas/")]
    assert {name.rpartition("/")[2] for name in references} <= set(told["components"]["schemas"])


async def test_whoever_has_a_session_already_is_not_sent_it_again(site: Site) -> None:
    async with site.client(site.token()) as owner:
        session = (await owner.post("/api/sessions", json={})).json()["session"]["id"]
        first = await owner.get(f"/api/sessions/{session}")
        known = {"If-None-Match": first.headers["etag"]}
        again = await owner.get(f"/api/sessions/{session}", headers=known)
        assert (again.status_code, again.content) == (304, b"")
        await owner.patch(f"/api/sessions/{session}", json={"title": "other"})
        assert (await owner.get(f"/api/sessions/{session}", headers=known)).status_code == 200


async def test_a_token_with_few_scopes_steers_no_session_that_reaches_further(site: Site) -> None:
    async with (
        site.client(site.token()) as owner,
        site.client(site.token(scopes="sessions:read sessions:write")) as few,
    ):
        wide = (await owner.post("/api/sessions", json={})).json()["session"]["id"]
        for method, path, body in (
            ("POST", f"/api/sessions/{wide}/messages", {"text": "!call save_memory {}"}),
            ("PATCH", f"/api/sessions/{wide}", {"mode": "autonomy"}),
        ):
            answer = await few.request(method, path, json=body)
            assert (answer.status_code, answer.json()["error"]["layer"]) == (403, "scopes")
        own = (await few.post("/api/sessions", json={})).json()["session"]["id"]
        assert (await few.post(f"/api/sessions/{own}/messages", json={"text": "!say hi"})).status_code == 202


async def test_a_question_is_not_approved_and_nothing_is_answered_half(site: Site) -> None:
    async with site.client(site.token()) as owner:
        session = (await owner.post("/api/sessions", json={})).json()["session"]["id"]

        def ask(question: str) -> str:
            new = NewAsk(kind="question", agent_id="x", question=question, session=session)
            return site.fleet.platform.database.direct(lambda tx: Asks(tx, "default").open(new)[0].id, write=True)

        first, second = ask("which?"), ask("when?")
        wrong = await owner.post(f"/api/sessions/{session}/approve", json={"ask_id": first, "always": True})
        assert wrong.status_code == 400
        assert (
            await owner.post(f"/api/sessions/{session}/answer", json={"ask_id": second, "answer": "now"})
        ).is_success
        late = await owner.post(f"/api/sessions/{session}/answer", json={"answers": {first: "this", second: "later"}})
        assert late.status_code == 409
        both = await owner.get("/api/asks", params={"status": "all"})
        assert {each["id"]: each["status"] for each in both.json()["asks"]} == {first: "open", second: "answered"}

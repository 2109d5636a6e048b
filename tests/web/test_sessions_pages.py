"""The pages of sessions: who may see, start and steer them, and what they show."""

import json
import re
from typing import Any

import pytest

from rookery.db.tx import Tx
from rookery.domains.sessions.watching import page_session_events, show_session_choices, watch_session
from rookery.sessions.events import EventName
from rookery.sessions.store import NewSession, SessionRows
from tests.web.asking import looking_on
from tests.web.guest import Guest, words_of
from tests.web.watching import watched

HX = {"HX-Request": "true"}
STEERING = ("messages", "change", "interrupt", "end")


async def test_whoever_is_not_signed_in_is_sent_to_sign_in(guest: Guest) -> None:
    session = await watched(guest.fleet)
    for path in ("/sessions", "/sessions/new", f"/sessions/{session.id}", f"/sessions/{session.id}/older"):
        assert (await guest.get(path)).headers["location"] == f"/sign-in?next={path}"
    assert (await guest.get(f"/sessions/{session.id}/events")).status_code == 401
    assert (await guest.post(f"/sessions/{session.id}/end")).status_code == 303
    assert session_state(guest, session.id) == "idle"


async def test_a_viewer_watches_and_steers_nothing(owner: Guest) -> None:
    session, vera = await watched(owner.fleet, title="Secret work"), looking_on(owner)
    for path in ("/sessions", f"/sessions/{session.id}"):
        page = (await vera.get(path)).text
        assert "Secret work" in page
        assert 'action="/sessions' not in page.replace('action="/sessions">\n', "")
        assert "Start a session" not in page
    assert "started by others" in await vera.words("/sessions/new")
    assert "Transcripts" not in await vera.words("/sessions")
    assert (await vera.get("/transcripts")).status_code in (403, 404)
    assert (await vera.post("/sessions", {"message": "hello"})).status_code == 403
    for what in STEERING:
        fields = {"text": "hello", "title": "mine"}
        assert (await vera.post(f"/sessions/{session.id}/{what}", fields)).status_code == 403, what
    assert session_state(owner, session.id) == "idle"


async def test_an_empty_session_says_what_comes_next_to_whoever_looks(owner: Guest) -> None:
    session, vera = await watched(owner.fleet), looking_on(owner)
    address, begin = f"/sessions/{session.id}", "Send a message to begin."
    assert f"Nothing has happened yet. {begin}" in await owner.words(address)
    assert begin not in await vera.words(address)
    assert (await owner.post(f"{address}/messages", {"text": "hello"})).status_code == 303
    assert "Nothing has happened yet. What was sent waits for its turn." in await owner.words(address)
    assert (await owner.post(f"{address}/end")).status_code == 303
    assert begin not in await owner.words(address)


async def test_a_change_without_the_token_of_its_form_is_none(owner: Guest) -> None:
    session = await watched(owner.fleet)
    for what in STEERING:
        answer = await owner.client.post(f"/sessions/{session.id}/{what}", data={"text": "x", "title": "x"})
        assert answer.status_code == 403
    assert (await owner.client.post("/sessions", data={"message": "x"})).status_code == 403
    assert session_state(owner, session.id) == "idle"


async def test_sessions_of_another_tenant_are_not_there(owner: Guest) -> None:
    await watched(owner.fleet)
    new = NewSession(actor=owner.fleet.actor(), runtime="scripted", mode="ask", opened_by="x", title="Theirs")
    other = owner.fleet.platform.database.direct(lambda tx: SessionRows(tx, "other").create(new), write=True).id
    assert "Theirs" not in (await owner.get("/sessions")).text
    for path in (f"/sessions/{other}", f"/sessions/{other}/older", f"/sessions/{other}/events", "/sessions/none"):
        assert (await owner.get(path)).status_code == 404, path
    for what in STEERING:
        assert (await owner.post(f"/sessions/{other}/{what}", {"text": "x", "title": "x"})).status_code == 404, what


async def test_the_list_says_what_tools_at_work_have_said_last(owner: Guest) -> None:
    session = await watched(owner.fleet)

    def begin(tx: Tx) -> None:
        rows = SessionRows(tx, "default")
        rows.began(rows.of(session.id), session.run)

    owner.fleet.platform.database.direct(begin, write=True)
    given: dict[str, Any] = {"call_id": "c1", "tool": "Bash", "input": {}}
    said = {"call_id": "c1", "tool": "Bash", "text": "120 of 300 <b>tests"}
    await session.happen(("tool_call_start", given), ("tool_status", said))
    assert "120 of 300 &lt;b&gt;tests" in (await owner.part("/sessions", "rows")).text


async def test_no_session_and_no_runtime_say_what_to_do(owner: Guest) -> None:
    assert "ROOKERY_RUNTIME=claude" in await owner.words("/sessions")
    assert "This server starts no agents" in await owner.words("/sessions/new")


async def test_a_session_is_started_with_what_was_chosen(owner: Guest) -> None:
    await watched(owner.fleet)
    form = (await owner.get("/sessions/new")).text
    assert '<option value="scripted" selected>' in form
    issue = await owner.fleet.call(owner.fleet.owner, "create_issue", title="login fails")
    chosen = {"agent": "default", "mode": "ask", "issue": issue.identifier, "model": "small-1", "runtime": "scripted"}
    fields = {**chosen, "project": "default", "profile": "worker", "title": "", "cwd": "", "message": "mend the login"}
    answer = await owner.post("/sessions", fields)
    page = await owner.words(answer.headers["location"])
    for shown in ("mend the login", issue.identifier, "scripted · small-1", "ask", "by owner"):
        assert shown in page
    assert "Queue mend the login" in page


@pytest.mark.parametrize("wrong", [{"runtime": "none-such"}, {"mode": "wild"}, {"agent": "nobody"}, {"cwd": "/etc"}])
async def test_what_cannot_be_started_is_refused_in_words(owner: Guest, wrong: dict[str, str]) -> None:
    await watched(owner.fleet)
    answer = await owner.post("/sessions", wrong)
    assert answer.status_code in (400, 403, 404)
    assert "This did not work" in answer.text
    assert len(all_sessions(owner)) == 1


async def test_a_message_that_is_sent_twice_waits_once_in_the_queue(owner: Guest) -> None:
    session = await watched(owner.fleet)
    for _ in range(2):
        sent = await owner.post(f"/sessions/{session.id}/messages", {"text": "go on", "message_id": "m-1"}, headers=HX)
        assert set(json.loads(sent.headers["hx-trigger"])) == {"notice", "session", "sent"}
    assert words_of((await owner.part(f"/sessions/{session.id}", "standing")).text).count("go on") == 1
    second = await owner.post(f"/sessions/{session.id}/messages", {"text": "and then"}, headers=HX)
    assert "Queued, 1 before it." in second.headers["hx-trigger"]
    assert (await owner.post(f"/sessions/{session.id}/messages", {"text": " "})).status_code == 400


async def test_mode_model_and_title_change_and_the_session_ends_for_good(owner: Guest) -> None:
    session = await watched(owner.fleet)
    await owner.post(f"/sessions/{session.id}/change", {"mode": "ask", "model": "large-2", "title": "Another name"})
    page = await owner.words(f"/sessions/{session.id}")
    assert "Another name" in page
    assert "scripted · large-2" in page
    assert (await owner.post(f"/sessions/{session.id}/change", {})).status_code == 400
    await owner.post(f"/sessions/{session.id}/end")
    page = (await owner.get(f"/sessions/{session.id}")).text
    assert "for good" in page
    assert "data-send" not in page
    assert (await owner.post(f"/sessions/{session.id}/messages", {"text": "hello"})).status_code == 409


async def test_a_transcript_shows_what_was_said_done_asked_and_spent(owner: Guest) -> None:
    session = await watched(owner.fleet)
    await session.happen(
        ("turn_input", {"text": "mend it", "from": owner.fleet.owner.subject, "message_id": "m"}),
        ("thinking_delta", {"text": "first "}), ("thinking_delta", {"text": "I look"}),
        ("text_delta", {"text": "I will **lo"}), ("tool_status", {"text": "x", "call_id": "none"}),
        ("text_delta", {"text": "ok** now"}),
        ("tool_call_start", {"call_id": "c1", "tool": "mcp__rookery__ping"}),
        ("tool_call_end", {"call_id": "c1", "tool": "mcp__rookery__ping", "input": {"word": "hi"}}),
        ("tool_result", {"call_id": "c1", "tool": "mcp__rookery__ping", "text": "pong " * 300, "is_error": False}),
        ("tool_call_start", {"call_id": "c2", "tool": "Bash"}),
        ("tool_status", {"call_id": "c2", "tool": "Bash", "text": "17 of 90 tests"}),
        ("approval_required", {"ask_id": "a1", "call_id": "c2", "tool": "Bash", "title": "May it run?"}),
        ("interaction_resolved", {"ask_id": "a1", "call_id": "c2", "how": "denied", "reason": "too early"}),
        ("task_update", {"tasks": [{"id": "1", "text": "Look", "status": "completed"}]}),
        ("error", {"message": "it broke"}),
        ("done", {"reason": "failed", "error": "no luck", "cost_usd": 0.5, "input_tokens": 12000, "output_tokens": 5}),
    )  # fmt: skip
    page = (await owner.get(f"/sessions/{session.id}")).text
    words = words_of(page)
    assert "owner now mend it" in words
    assert "Thinking first I look" in words
    assert "<strong>look</strong> now" in page
    assert "ping word: hi done" in words
    assert "Result 1,500 characters" in words
    assert "17 of 90 tests" in words
    assert "May it run? denied too early" in words
    assert "Tasks completed Look" in words
    assert "it broke" in words
    assert "failed now · $0.50 · 12.0k tokens in, 5 out · run no luck" in words


async def test_long_transcripts_come_in_whole_turns_older_ones_when_wanted(owner: Guest) -> None:
    session = await watched(owner.fleet)
    log = owner.fleet.platform.calls.facts["sessions"].log
    from rookery.sessions.events import SessionEvent

    for turn in range(12):
        log.put("default", session.id, session.run, SessionEvent("turn_input", {"text": f"turn {turn:02}"}))
        for number in range(60):
            log.put("default", session.id, session.run, SessionEvent("system", {"text": f"line {turn:02}-{number}"}))
        await log.flush(session.id)
    page = (await owner.get(f"/sessions/{session.id}")).text
    assert "turn 11" in page
    assert "turn 03" not in page
    seen = set(re.findall(r"line \d\d-\d+", page))
    first = re.search(r"/older\?before=(\d+)", page)
    while first is not None:
        plain = (await owner.get(f"/sessions/{session.id}?before={first[1]}")).text
        assert "data-stream" not in plain
        older = (await owner.get(f"/sessions/{session.id}/older?before={first[1]}", headers=HX)).text
        found = set(re.findall(r"line \d\d-\d+", older))
        assert found
        assert not found & seen
        assert found <= set(re.findall(r"line \d\d-\d+", plain))
        seen |= found
        first = re.search(r"/older\?before=(\d+)", older)
    assert len(seen) == 12 * 60


async def test_hostile_events_are_shown_and_do_nothing(owner: Guest) -> None:
    evil = "<script>alert(1)</script>\u202e\x1b[31m<img src=x onerror=alert(2)>"
    session = await watched(owner.fleet, title=evil[:100])
    everything: dict[str, Any] = {
        "text": evil, "from": evil, "tool": evil, "call_id": evil, "input": {evil: evil}, "title": evil, "ask_id": evil,
        "message": evil, "reason": evil, "error": evil, "tasks": [{"text": evil, "status": evil}], "line": evil,
        "questions": [{"question": evil}], "how": evil,
    }  # fmt: skip
    names: tuple[EventName, ...] = (
        "turn_input", "text_delta", "thinking_delta", "tool_call_start", "tool_call_end", "tool_result", "tool_status",
        "approval_required", "question_prompt", "interaction_resolved", "task_update", "system", "error", "done",
    )  # fmt: skip
    for name in names:
        await session.happen((name, everything))
    for path in ("/sessions", f"/sessions/{session.id}"):
        page = (await owner.get(path)).text
        assert "<script>alert" not in page
        assert "<img" not in page
        assert "\u202e" not in page
        assert "\x1b" not in page


async def test_the_tools_behind_the_pages_are_for_people_alone(owner: Guest) -> None:
    """watch_session, page_session_events and show_session_choices are in no list, and no agent reaches them."""
    from rookery.core.errors import PermissionDenied

    session = await watched(owner.fleet)
    given = {"session_id": session.id}
    for tool, arguments in ((watch_session, given), (page_session_events, given), (show_session_choices, {})):
        assert owner.fleet.platform.registry.get(tool.name) is None
        with pytest.raises(PermissionDenied):
            await owner.fleet.platform.calls.run(owner.fleet.actor(), tool, arguments)


def session_state(guest: Guest, session_id: str) -> str:
    return guest.fleet.platform.database.direct(lambda tx: SessionRows(tx, "default").of(session_id)).state


def all_sessions(guest: Guest) -> Any:
    return guest.fleet.platform.database.direct(lambda tx: SessionRows(tx, "default").page(100))

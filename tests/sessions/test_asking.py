"""What agents ask: nobody but a person decides, the first answer counts, and no session waits for ever."""

import time
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

import pytest
import sqlalchemy as sa

from rookery.asks import approvals
from rookery.asks.store import Asks
from rookery.core.errors import Conflict
from rookery.sessions.events import SessionEvent
from rookery.sessions.port import Asked, Choice, ToolUse
from rookery.sessions.store import Row
from tests.sessions.agents import Puppet, Puppets, obedient
from tests.sessions.stage import Stage

pytestmark = pytest.mark.anyio
SAVE = '!call save_memory {"key": "tea", "content": "green"}'


def held(stage: Stage) -> Row:
    """A session whose agent asks for whatever changes something."""
    return stage.open(mode="ask")


def resolved(stage: Stage, session: Row) -> list[tuple[str, str]]:
    return [(each.data["how"], each.data["reason"]) for each in stage.events(session.id, "interaction_resolved")]


def modes(stage: Stage, session: Row) -> list[str]:
    return [each.data.get("mode", "") for each in stage.events(session.id, "session_status")]


def memories(stage: Stage) -> list[str]:
    return [row.key for row in stage.read(lambda tx: tx.all(sa.text("SELECT key FROM memories ORDER BY key")))]


def saving(key: str) -> str:
    return f'!call save_memory {{"key": "{key}", "content": "{key} is there"}}'


async def test_a_second_answer_is_refused_and_told_whose_the_first_was(stage: Stage) -> None:
    session = held(stage)
    async with stage.at_work():
        message = stage.send(session.id, SAVE)
        (ask,) = await stage.asked()
        stage.answer(ask.id, "approve")
        with pytest.raises(Conflict, match="already answered by owner via test"):
            stage.answer(ask.id, "deny")
        await stage.done(session.id, message)
        with pytest.raises(Conflict, match="already answered"):
            stage.answer(ask.id, "approve")


async def test_an_answer_to_a_question_of_a_turn_that_is_over_is_refused(stage: Stage) -> None:
    session = held(stage)
    async with stage.at_work():
        message = stage.send(session.id, "!ask Which one? | this | that")
        (ask,) = await stage.asked()
        stage.change(lambda rows: rows.interrupt(session.id))
        assert (await stage.done(session.id, message)).data["reason"] == "interrupted"
        with pytest.raises(Conflict, match="was withdrawn"):
            stage.answer(ask.id, "this")
    assert resolved(stage, session) == [("cancelled", "the turn has ended")]


async def test_what_is_denied_is_not_done_and_the_agent_hears_why(stage: Stage) -> None:
    session = held(stage)
    async with stage.at_work():
        message = stage.send(session.id, SAVE)
        (ask,) = await stage.asked()
        stage.answer(ask.id, "deny: not today")
        ended = await stage.done(session.id, message)
    assert ended.data["output"] == "save_memory was refused: owner denied it: not today"
    assert resolved(stage, session) == [("denied", "not today")]
    assert memories(stage) == []


async def test_what_is_approved_is_asked_once_and_done_once(stage: Stage) -> None:
    session = held(stage)
    async with stage.at_work():
        message = stage.send(session.id, SAVE)
        (ask,) = await stage.asked()
        await stage.until(lambda: stage.row(session.id).state == "waiting", "the session waits")
        (shown,) = await stage.until(lambda: stage.events(session.id, "approval_required"), "it is shown")
        stage.answer(ask.id, "approve")
        await stage.done(session.id, message)
    assert shown.data["ask_id"] == ask.id
    assert (shown.data["tool"], shown.data["input"]) == (
        "mcp__rookery__save_memory",
        {"key": "tea", "content": "green"},
    )
    assert (shown.data["timeout_ms"], shown.data["parked_after_ms"]) == (4 * 3_600_000, 600_000)
    assert resolved(stage, session) == [("approved", "")]
    assert memories(stage) == ["tea"]
    assert [(each.kind, each.status) for each in stage.asks(None)] == [("approval", "answered")]


async def test_a_yes_for_a_while_is_not_asked_again(stage: Stage) -> None:
    session = held(stage)
    async with stage.at_work():
        message = stage.send(session.id, SAVE, saving("milk"))
        (ask,) = await stage.asked()
        stage.answer(ask.id, "approve for 2 hours")
        await stage.done(session.id, message)
    assert memories(stage) == ["milk", "tea"]
    assert len(stage.asks(None)) == 1


async def test_several_that_are_alike_are_approved_together(stage: Stage) -> None:
    first, second = held(stage), held(stage)
    async with stage.at_work():
        messages = [stage.send(session.id, saving(key)) for session, key in ((first, "milk"), (second, "tea"))]
        asked = await stage.asked(2)
        newest = max(ask.created_ms for ask in asked)
        stage.write(
            lambda tx: Asks(tx, "default").answer(asked[0].id, "approve", "owner", "test", similar=True, seen_ms=newest)
        )
        for session, message in zip((first, second), messages, strict=True):
            await stage.done(session.id, message)
    assert memories(stage) == ["milk", "tea"]


@pytest.mark.parametrize(
    ("mode", "tool", "given", "asks"),
    [
        ("ask", "Read", '{"file_path": "a"}', False),
        ("ask", "Read", '{"file_path": "../a"}', True),
        ("ask", "WebFetch", '{"url": "https://example.com"}', True),
        ("ask", "Edit", '{"file_path": "a"}', True),
        ("ask", "Bash", '{"command": "ls"}', True),
        ("act", "Bash", '{"command": "ls"}', True),
        ("act", "mcp__other__search", "{}", True),
        ("autonomy", "Bash", '{"command": "ls"}', False),
    ],
)
async def test_tools_that_are_not_ours_are_asked_for_as_the_mode_says(
    make_stage: Callable[..., Stage], tmp_path: Path, mode: str, tool: str, given: str, asks: bool
) -> None:
    (tmp_path / "work").mkdir()
    stage = make_stage(session_roots=(str(tmp_path),))
    session = stage.open(mode=mode, cwd=str(tmp_path / "work"))
    async with stage.at_work():
        message = stage.send(session.id, f"!use {tool} {given}")
        if asks:
            (ask,) = await stage.asked()
            assert (ask.kind, ask.subject, ask.session) == ("approval", tool, session.id)
            stage.answer(ask.id, "approve")
        ended = await stage.done(session.id, message)
    assert ended.data["output"] == f"{tool} was used"
    assert len(stage.asks(None)) == asks


async def test_a_yes_to_a_foreign_tool_counts_once_and_a_lasting_one_longer(stage: Stage) -> None:
    session = held(stage)
    use = '!use Bash {"command": "make"}'
    async with stage.at_work():
        message = stage.send(session.id, use, use)
        (first,) = await stage.asked()
        stage.answer(first.id, "approve")
        (second,) = await stage.until(lambda: [each for each in stage.asks() if each.id != first.id], "asked again")
        stage.answer(second.id, "approve for 1 hour")
        await stage.done(session.id, message)
        assert (await stage.turn(session.id, use))["output"] == "Bash was used"
    assert len(stage.asks(None)) == 2


async def test_a_question_is_answered_by_an_option_or_in_other_words(stage: Stage) -> None:
    session = stage.open()
    async with stage.at_work():
        for said, heard in (("2", "that"), ("neither of them", "neither of them")):
            message = stage.send(session.id, f"!ask Which one, {heard}? | this | that")
            (ask,) = await stage.asked()
            assert (ask.kind, ask.options) == ("question", ["this", "that"])
            stage.answer(ask.id, said)
            assert (await stage.done(session.id, message)).data["output"] == f"answered: {heard}"
    first, _ = stage.events(session.id, "question_prompt")
    (question,) = first.data["questions"]
    assert (question["question"], first.data["index"]) == ("Which one, that?", 0)
    assert [option["label"] for option in question["options"]] == ["this", "that"]
    assert resolved(stage, session) == [("answered", "that"), ("answered", "neither of them")]


async def test_the_same_question_is_put_to_a_person_again_once_its_answer_was_heard(stage: Stage) -> None:
    session = stage.open()
    async with stage.at_work():
        for said in ("yes", "no"):
            message = stage.send(session.id, "!ask Delete the next one? | yes | no")
            (ask,) = await stage.asked()
            stage.answer(ask.id, said)
            assert (await stage.done(session.id, message)).data["output"] == f"answered: {said}"
    assert len(stage.events(session.id, "question_prompt")) == 2
    assert resolved(stage, session) == [("answered", "yes"), ("answered", "no")]


async def test_what_a_card_hides_is_hidden_where_it_is_asked_for(stage: Stage) -> None:
    session = held(stage)
    hook = '{"webhook_url": "https://hooks.slack.com/services/T0SECRET"}'
    given = f'{{"action": "set", "channel_type": "slack", "config": {hook}}}'
    async with stage.at_work():
        message = stage.send(session.id, f"!call configure_notifications {given}")
        (ask,) = await stage.asked()
        (shown,) = await stage.until(lambda: stage.events(session.id, "approval_required"), "it is shown")
        stage.answer(ask.id, "deny")
        await stage.done(session.id, message)
    assert shown.data["input"]["config"] == {"webhook_url": "https://hooks.slack.com/(hidden)"}
    assert "T0SECRET" not in str(shown.data)


async def test_the_mode_of_a_turn_that_is_under_way_can_be_changed(stage: Stage) -> None:
    session = held(stage)
    async with stage.at_work():
        message = stage.send(session.id, SAVE, "!use Bash {}", saving("milk"))
        (ask,) = await stage.asked()
        stage.change(lambda rows: rows.change(session.id, mode="autonomy"))
        await stage.until(lambda: "autonomy" in modes(stage, session), "the mode is taken")
        stage.answer(ask.id, "approve")
        ended = await stage.done(session.id, message)
    assert "refused" not in ended.data["output"]
    assert len(stage.asks(None)) == 1


async def test_waiting_for_a_person_takes_nothing_of_the_time_of_a_turn(make_stage: Callable[..., Stage]) -> None:
    stage = make_stage(agent_timeout_ms=1500)
    session = held(stage)
    async with stage.at_work():
        message = stage.send(session.id, SAVE, "!say done")
        (ask,) = await stage.asked()
        (run,) = stage.runs()
        over = stage.runs()[0].deadline_ms
        await stage.until(lambda: time.time_ns() // 1_000_000 > over + 300, "its first deadline is over")
        stage.answer(ask.id, "approve")
        assert (await stage.done(session.id, message)).data["reason"] == "completed"
        late = await stage.turn(session.id, "!wait 60")
    assert (late["reason"], late["error"]) == ("timed_out", "it did not end within 1.5 s")
    waited, _ = stage.runs()
    assert (waited.id, waited.status, waited.ended_ms > over) == (run.id, "succeeded", True)
    assert waited.deadline_ms - waited.started_ms == 1500 + waited.waited_ms


async def test_several_questions_are_asked_each_for_itself_and_answered_in_their_order(stage: Stage) -> None:
    heard: list[Sequence[str] | None] = []

    async def play(puppet: Puppet) -> AsyncIterator[SessionEvent]:
        drinks = [Choice("tea", "green"), Choice("milk")]
        asked = [Asked("Which drink?", "Drink", drinks), Asked("With what?", "", [Choice("sugar")], several=True)]
        heard.append(await puppet.host.answers("c1", asked))
        async for event in obedient(puppet):
            yield event

    stage.use(Puppets(play))
    session = stage.open()
    async with stage.at_work():
        message = stage.send(session.id, "drinks")
        asks = {ask.question: ask for ask in await stage.asked(2)}
        assert "tea: green" in asks["Which drink?"].context
        assert "Several may be chosen" in asks["With what?"].context
        stage.answer(asks["With what?"].id, "sugar, lemon")
        stage.answer(asks["Which drink?"].id, "1")
        await stage.done(session.id, message)
    assert heard == [["tea", "sugar, lemon"]]
    shown = [(event.data["index"], event.data["of"]) for event in stage.events(session.id, "question_prompt")]
    assert shown == [(0, 2), (1, 2)]
    assert "interaction_resolved" in stage.names(session.id)


async def test_an_agent_without_a_turn_is_refused_everything(stage: Stage) -> None:
    puppets = Puppets()
    stage.use(puppets)
    session = stage.open(mode="autonomy")
    async with stage.at_work():
        await stage.turn(session.id, "hello")
        await stage.until(lambda: not stage.sessions.turns, "the turn is over")
        host = puppets.made[0].host
        permission = await host.may_use(ToolUse(tool="Read", input={}, call_id="c1"))
        assert (permission.allow, "no turn" in permission.reason) == (False, True)
        assert await host.answers("c1", [Asked("Which?")]) is None
    assert stage.asks(None) == []


async def test_whoever_is_told_yes_may_go_on_asking(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(approvals, "MAX_OPENED", 2)
    session = held(stage)
    async with stage.at_work():
        message = stage.send(session.id, *(f'!use Bash {{"command": "{number}"}}' for number in range(5)))
        for said in ("approve", "approve", "approve", "deny", "deny"):
            (ask,) = await stage.asked()
            stage.answer(ask.id, said)
        await stage.done(session.id, message)
        refused = await stage.turn(session.id, '!use Bash {"command": "once more"}')
    assert "approvals were asked for in ten minutes" in refused["output"]

"""What a handler can do besides answering: tell, ask, publish, call other tools, and know its time."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from rookery.core.actor import Actor
from rookery.core.context import Door, SilentDoor
from rookery.core.errors import (
    ConfigurationError,
    Conflict,
    PermissionDenied,
    RookeryError,
    ServiceUnavailable,
    TimedOut,
)
from rookery.core.events import Event
from rookery.core.questions import Answer, ClientInfo, Elicit, Elicited, Question, Root, Rooted, Sample, Sampled
from rookery.core.record import Record
from rookery.db.tx import Tx
from rookery.identity.store import IdentityStore
from tests.core import context_probes
from tests.core.context_probes import KEPT, SHORT_S, WAYS
from tests.platform_fixtures import Fleet

SOON_S = 10


class RecordingDoor:
    """A client that answers everything and remembers what it was told, and by which thread."""

    def __init__(self) -> None:
        self.heard: list[tuple[Any, ...]] = []
        self.threads: set[int] = set()
        self.answer: dict[str, Any] | None = {"colour": "green"}

    def tell(self, method: str, params: dict[str, Any]) -> None:
        self.threads.add(threading.get_ident())
        self.heard.append((method, params))

    @property
    def client(self) -> ClientInfo:
        return ClientInfo(name="recorder", elicitation=True, sampling=True, roots=True)

    async def ask(self, questions: Sequence[Question]) -> Sequence[Answer]:
        self.heard += [(question,) for question in questions]
        answers: dict[str, Answer] = {
            "elicitation": Elicited("decline") if self.answer is None else Elicited("accept", self.answer),
            "sampling": Sampled("well"),
            "roots": Rooted((Root("file:///work"),)),
        }
        return [answers[question.capability] for question in questions]

    def release(self) -> Awaitable[None]:
        self.heard.append(("release",))
        return SilentDoor().release()

    async def send_notification(self, method: str, params: dict[str, Any]) -> None:
        self.heard.append((method, params))

    async def send_request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self.heard.append((method, params))
        return {"c": 3}


class WaitingDoor(SilentDoor):
    """Says when a handler on the event loop has told anything."""

    def __init__(self) -> None:
        self.told = asyncio.Event()

    def tell(self, method: str, params: dict[str, Any]) -> None:
        self.told.set()


@pytest.fixture
def probes(database_url: str, make_fleet: Callable[..., Fleet]) -> Fleet:
    KEPT.clear()
    return make_fleet(database_url, extra={"probes": context_probes})


@pytest.fixture
def door() -> RecordingDoor:
    return RecordingDoor()


async def said(fleet: Fleet, name: str, /, door: Door | None = None, actor: Actor | None = None, **args: Any) -> str:
    """What a probe answers, called as the default agent unless told otherwise."""
    call = fleet.platform.calls.call(actor or fleet.actor(), name, args, door=door)
    return (await asyncio.wait_for(call, SOON_S)).structured["said"]


def agents(fleet: Fleet) -> set[str]:
    return {row.name for row in fleet.platform.database.direct(lambda tx: IdentityStore(tx, "default").agents())}


def outcomes(fleet: Fleet) -> list[tuple[str, str]]:
    """The tools that were called and how it ended, oldest first."""
    statement = "SELECT tool, outcome FROM audit_log ORDER BY id"
    rows = fleet.platform.database.direct(lambda tx: list(tx.connection.exec_driver_sql(statement)))
    return [(row.tool, row.outcome) for row in rows]


@pytest.mark.parametrize("name", ["tell_reading", "tell_writing", "tell_inline", "tell_outside"])
async def test_status_and_progress_reach_the_client_from_every_kind_of_handler(
    probes: Fleet, door: RecordingDoor, name: str
) -> None:
    await said(probes, name, door)
    assert door.heard == [
        ("status", {"message": "halfway"}),
        ("progress", {"progress": 1, "total": 2, "message": "one of two"}),
        ("progress", {"progress": 2, "total": None, "message": None}),
    ]
    if name == "tell_reading":
        assert threading.get_ident() not in door.threads
    assert await said(probes, name) == ""


@pytest.mark.parametrize("name", ["tell_reading", "tell_writing", "tell_inline", "tell_outside"])
async def test_status_is_told_to_the_tap_too_with_who_calls_and_which_tool(
    probes: Fleet, door: RecordingDoor, name: str
) -> None:
    heard: list[tuple[Actor, str, str]] = []
    probes.platform.calls.tap = lambda actor, tool, text: heard.append((actor, tool, text))
    caller = probes.actor(session="ses-1")
    await probes.platform.calls.call(caller, name, {}, door=door)
    assert heard == [(caller, name, "halfway")]
    assert door.heard[0] == ("status", {"message": "halfway"})


async def test_an_event_is_delivered_once_its_change_can_be_seen(probes: Fleet) -> None:
    seen: list[tuple[Event, bool]] = []
    probes.platform.events.subscribe(lambda event: seen.append((event, event.subject in agents(probes))))
    await said(probes, "make_thing", name="ada")
    assert seen == [(Event(name="ThingMade", tenant="default", subject="ada", payload={"size": 3}), True)]


async def test_a_change_is_announced_though_its_caller_has_gone(probes: Fleet) -> None:
    seen: list[Event] = []
    probes.platform.events.subscribe(seen.append)
    database, loop = probes.platform.database, asyncio.get_running_loop()
    seal = database.seal

    def seal_once_the_caller_has_gone(tx: Tx, records: Sequence[Record]) -> None:
        gone = threading.Event()
        loop.call_soon_threadsafe(lambda: (call.cancel(), loop.call_soon(gone.set)))
        assert gone.wait(10)
        seal(tx, records)

    database.seal = seal_once_the_caller_has_gone
    call = asyncio.create_task(said(probes, "make_thing", name="ada"))
    with pytest.raises(asyncio.CancelledError):
        await call
    async with asyncio.timeout(10):
        while not seen:
            await asyncio.sleep(0.01)
    database.seal = seal
    assert [event.subject for event in seen] == ["ada"]
    assert "ada" in agents(probes)


async def test_a_handler_that_fails_has_published_nothing(probes: Fleet) -> None:
    seen: list[Event] = []
    probes.platform.events.subscribe(seen.append)
    for name, arguments in (
        ("make_thing", {"name": "ada", "fail": True}),
        ("call_inside", {"tool": "make_thing", "arguments": {"name": "ada", "fail": True}}),
        ("call_inside", {"tool": "make_thing", "arguments": {"name": "ada"}, "fail": True}),
        ("call_another", {"tool": "ping", "fail": True}),
    ):
        with pytest.raises(Conflict, match="told to fail"):
            await said(probes, name, **arguments)
    assert seen == []
    assert "ada" not in agents(probes)


async def test_what_only_reads_has_nothing_to_publish_and_is_told_so(probes: Fleet) -> None:
    with pytest.raises(ConfigurationError, match="publish_reading"):
        await said(probes, "publish_reading")


async def test_a_tool_called_inside_shares_the_transaction_and_is_recorded(probes: Fleet) -> None:
    seen: list[str] = []
    probes.platform.events.subscribe(lambda event: seen.append(event.name))
    assert await said(probes, "call_inside", tool="make_thing", arguments={"name": "ada"}) == '{"said":"ada"}'
    assert "ada" in agents(probes)
    assert seen == ["OuterCalled", "ThingMade"]
    with pytest.raises(Conflict):
        await said(probes, "call_inside", tool="make_thing", arguments={"name": "eve"}, fail=True)
    assert "eve" not in agents(probes)
    assert outcomes(probes) == [("make_thing", "done"), ("call_inside", "done"), ("call_inside", "failed")]


@pytest.mark.parametrize("name", ["call_inside", "call_another"])
async def test_another_tool_is_called_with_the_rights_of_the_caller(probes: Fleet, name: str) -> None:
    wanted: dict[str, Any] = {"tool": "create_agent", "arguments": {"name": "ada"}}
    with pytest.raises(PermissionDenied) as caught:
        await said(probes, name, **wanted)
    assert caught.value.layer == "principal"
    assert "ada" not in agents(probes)
    await said(probes, name, actor=probes.owner, **wanted)
    assert "ada" in agents(probes)


async def test_the_arguments_of_a_tool_called_inside_are_checked(probes: Fleet) -> None:
    for arguments in ({}, {"name": "ada", "nonsense": 1}):
        with pytest.raises(RookeryError, match="make_thing"):
            await said(probes, "call_inside", tool="make_thing", arguments=arguments)
    assert "ada" not in agents(probes)


async def test_what_only_reads_cannot_call_what_writes_and_nothing_inside_waits(probes: Fleet) -> None:
    assert "pong" in await said(probes, "call_inside_reading", tool="ping")
    for name, inner in (("call_inside_reading", "make_thing"), ("call_inside", "call_another")):
        with pytest.raises(ConfigurationError, match=f"{name} cannot call {inner}"):
            await said(probes, name, tool=inner, arguments={"name": "ada"})
    assert "ada" not in agents(probes)


async def test_a_tool_called_from_outside_is_a_call_of_its_own(probes: Fleet, door: RecordingDoor) -> None:
    with pytest.raises(Conflict):
        await said(probes, "call_another", tool="make_thing", arguments={"name": "ada"}, fail=True)
    assert "ada" in agents(probes)
    assert outcomes(probes) == [("call_another", "intent"), ("make_thing", "done"), ("call_another", "failed")]
    await said(probes, "call_another", door, tool="tell_reading")
    assert len(door.heard) == 3


async def test_an_external_handler_reads_and_writes_in_transactions_that_end_at_once(probes: Fleet) -> None:
    with pytest.raises(Conflict, match="told to fail"):
        await said(probes, "write_outside", name="ada", fail=True)
    assert "ada" in agents(probes)


async def test_an_external_handler_asks_its_client(probes: Fleet, door: RecordingDoor) -> None:
    assert await said(probes, "ask", door, way="elicit") == "{'colour': 'green'}"
    assert await said(probes, "ask", door, way="sample") == "well"
    assert await said(probes, "ask", door, way="send_request") == "{'c': 3}"
    await said(probes, "ask", door, way="send_notification")
    door.answer = None
    assert await said(probes, "ask", door, way="elicit") == "None"
    question = (Elicit("Which colour?", {"type": "object"}),)
    asked = [(Sample("Say something", 10, "Be short"),), ("x/y", {"b": 2}), ("notifications/x", {"a": 1})]
    assert door.heard == [question, *asked, question]


@pytest.mark.parametrize("name", ["ask_reading", "ask_writing"])
async def test_a_handler_with_a_transaction_cannot_wait_for_anyone(
    probes: Fleet, door: RecordingDoor, name: str
) -> None:
    for way in WAYS:
        with pytest.raises(ConfigurationError, match=f"{way} is for external handlers; {name} is not one"):
            await said(probes, name, door, way=way)
    assert door.heard == []


async def test_a_client_that_cannot_be_asked_says_what_to_do_instead(probes: Fleet) -> None:
    for way, missing in {"elicit": "questions", "sample": "model", "send_request": "requests"}.items():
        with pytest.raises(ServiceUnavailable, match=missing) as caught:
            await said(probes, "ask", SilentDoor(), way=way)
        assert caught.value.hint
    assert await said(probes, "ask", SilentDoor(), way="send_notification") == "None"


async def test_a_handler_knows_how_long_it_has(probes: Fleet) -> None:
    assert 0 < float(await said(probes, "say_remaining")) <= SHORT_S
    assert SHORT_S < float(await said(probes, "say_remaining_of_many")) <= 60


async def test_a_tool_called_inside_has_no_more_time_than_its_caller(probes: Fleet) -> None:
    assert 0 < float(await said(probes, "say_remaining_inside")) <= SHORT_S


async def test_a_handler_that_checks_is_stopped_when_its_time_is_over(probes: Fleet) -> None:
    with pytest.raises(TimedOut, match="run_late was stopped"):
        await said(probes, "run_late")


async def test_a_handler_learns_that_its_caller_has_gone(probes: Fleet) -> None:
    door = WaitingDoor()
    call = asyncio.create_task(said(probes, "keep_context", door))
    await asyncio.wait_for(door.told.wait(), SOON_S)
    (ctx,) = KEPT
    assert not ctx.cancelled
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert ctx.cancelled
    with pytest.raises(TimedOut, match="keep_context was stopped"):
        ctx.check()


async def test_a_handler_sees_who_calls_and_never_the_token(probes: Fleet) -> None:
    made = await probes.call(probes.owner, "create_token", name="laptop", agent="default", scopes=["*"])
    actor = probes.actor(token=made.secret, session="ses-1")
    told = await said(probes, "describe", actor=actor)
    assert told.startswith("ses-1 req")
    assert f"Auth(subject='{actor.agent}', client='{made.id}', scopes=frozenset({{'*'}}))" in told
    assert made.secret.removeprefix("rk_") not in told
    with pytest.raises(AttributeError):
        actor.auth.token  # pyright: ignore[reportAttributeAccessIssue]  # noqa: B018

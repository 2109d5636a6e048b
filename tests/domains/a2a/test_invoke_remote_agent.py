"""Asking agents elsewhere, on a real server of the official SDK: what is refused, and what comes back."""

import asyncio
from typing import Any

import pytest

from rookery.core.errors import (
    Conflict,
    InvalidParams,
    PermissionDenied,
    RateLimited,
    ServiceUnavailable,
    TimedOut,
    ValidationFailed,
)
from rookery.outgoing.agents_client import agents_client
from rookery.settings import Settings
from tests.domains.a2a.conftest import MakeOutpost, on_one_database
from tests.domains.a2a.outpost import HERE, Outpost
from tests.domains.a2a.remote_agent import RemoteAgent, remote_agent

UNTRUSTED: dict[str, Any] = {"a2a_trust": ()}


@on_one_database
@pytest.mark.parametrize(
    "wrong",
    [
        {"agent_url": " "},
        {"message": "  "},
        {"message": "x" * 50_001},
        {"skill": ""},
        {"min_trust": "some"},
        {"timeout_minutes": 0},
        {"timeout_minutes": 61},
        {"timeout_minutes": True},
        {"timeout_minutes": float("nan")},
        {"model": "gpt"},
    ],
)
async def test_arguments_that_make_no_sense_are_refused(outpost: Outpost, wrong: dict[str, Any]) -> None:
    given = {"agent_url": "https://agent.example", "message": "echo hi", **wrong}
    with pytest.raises(InvalidParams):
        await outpost.result("invoke_remote_agent", **given)


async def test_what_is_no_address_is_refused(outpost: Outpost) -> None:
    for wrong in ("agent.example", "file:///etc/passwd", "https://a:b@agent.example", "http://[::1", "https://x/#y"):
        with pytest.raises(ValidationFailed):
            await outpost.invoke(wrong, "echo hi")


async def test_a_chain_of_agents_ends_at_depth_three(outpost: Outpost, mirror: RemoteAgent) -> None:
    with pytest.raises(PermissionDenied) as refused:
        await outpost.invoke(mirror.url, "echo hi", outpost.agent(depth=3))
    assert refused.value.layer == "depth"
    assert "invocation depth 3 exceeds maximum of 3" in refused.value.message
    assert mirror.executor.asked == []


async def test_the_address_guard_holds(make_outpost: MakeOutpost, mirror: RemoteAgent) -> None:
    with pytest.raises(ServiceUnavailable, match="private network"):
        await make_outpost(a2a_allow=()).invoke(mirror.url, "echo hi")
    with pytest.raises(ValidationFailed, match="private network") as refused:
        await agents_client(Settings(home="unused")).request("GET", mirror.url)
    assert refused.value.hint == "the owner can allow it with the setting a2a_allow"
    assert mirror.heads == []


async def test_an_agent_that_nobody_trusts_is_not_asked(make_outpost: MakeOutpost, mirror: RemoteAgent) -> None:
    outpost = make_outpost(**UNTRUSTED)
    with pytest.raises(PermissionDenied, match="the remote agent is untrusted, and low is needed") as refused:
        await outpost.invoke(mirror.url, "echo hi")
    assert refused.value.layer == "trust"
    assert mirror.executor.asked == []
    with pytest.raises(PermissionDenied, match="untrusted, and low is needed") as again:
        await outpost.invoke(mirror.url, "echo hi", min_trust="untrusted")
    assert again.value.hint == "the owner can vouch for it with the setting a2a_trust"
    assert mirror.executor.asked == []
    bold = make_outpost(**UNTRUSTED, a2a_min_trust="untrusted")
    assert (await bold.invoke(mirror.url, "echo hi", min_trust="untrusted"))["answer"] == "hi"
    strict = make_outpost(a2a_min_trust="high")
    with pytest.raises(PermissionDenied, match="is low, and high is needed"):
        await strict.invoke(mirror.url, "echo hi")


async def test_the_owners_word_counts_as_far_as_it_goes(make_outpost: MakeOutpost, mirror: RemoteAgent) -> None:
    outpost = make_outpost(a2a_trust=((mirror.place, ("medium",)),))
    with pytest.raises(PermissionDenied, match="is medium, and high is needed"):
        await outpost.invoke(mirror.url, "echo hi", min_trust="high")
    assert (await outpost.invoke(mirror.url, "echo hi", min_trust="medium"))["answer"] == "hi"


async def test_a_session_has_so_many_invocations(make_outpost: MakeOutpost, mirror: RemoteAgent) -> None:
    outpost = make_outpost(a2a_max_invocations=2)
    for _ in range(2):
        await outpost.invoke(mirror.url, "echo hi")
    with pytest.raises(RateLimited) as refused:
        await outpost.invoke(mirror.url, "echo hi")
    assert refused.value.message == "this session may not ask a remote agent now"
    assert (await outpost.invoke(mirror.url, "echo hi", outpost.agent(session="ses-2")))["answer"] == "hi"
    assert len(mirror.executor.asked) == 3


async def test_a_session_asks_so_many_agents(make_outpost: MakeOutpost, mirror: RemoteAgent) -> None:
    outpost = make_outpost(a2a_max_agents=1)
    async with remote_agent() as other:
        await outpost.invoke(mirror.url, "echo hi")
        with pytest.raises(RateLimited, match="may not ask a remote agent now"):
            await outpost.invoke(other.url, "echo hi")
        assert other.executor.asked == []
    assert (await outpost.invoke(mirror.url, "echo again"))["answer"] == "again"


async def test_a_session_waits_between_two_invocations(make_outpost: MakeOutpost, mirror: RemoteAgent) -> None:
    outpost = make_outpost(a2a_invocation_cooldown_ms=60_000)
    await outpost.invoke(mirror.url, "echo hi")
    with pytest.raises(RateLimited, match="may not ask a remote agent now"):
        await outpost.invoke(mirror.url, "echo hi")


async def test_two_calls_at_once_do_not_both_take_the_last_place(
    make_outpost: MakeOutpost, mirror: RemoteAgent
) -> None:
    outpost = make_outpost(a2a_max_invocations=1)
    await outpost.discover(mirror.url)
    both = (outpost.invoke(mirror.url, f"echo {name}") for name in ("one", "two"))
    done = await asyncio.gather(*both, return_exceptions=True)
    assert sorted(type(each).__name__ for each in done) == ["RateLimited", "dict"]


@pytest.mark.parametrize("binding", ["JSONRPC", "HTTP+JSON"])
@pytest.mark.parametrize("versions", [("1.0",), ("0.3",), ("1.0", "0.3")])
async def test_an_agent_of_either_revision_answers(outpost: Outpost, versions: tuple[str, ...], binding: str) -> None:
    async with remote_agent(*versions, binding=binding) as agent:
        result = await outpost.result("invoke_remote_agent", agent_url=agent.url, message="echo hello there")
        said = await outpost.invoke(agent.url, "message just a word")
    assert result.text == "hello there"
    assert (result.structured["state"], said["answer"]) == ("completed", "just a word")
    assert result.structured["task_id"]


async def test_depth_and_skill_are_sent_along(outpost: Outpost, mirror: RemoteAgent) -> None:
    await outpost.invoke(mirror.url, "echo hi", skill="echo")
    assert mirror.executor.about() == {"depth": 2.0, "skill": "echo"}
    await outpost.invoke(mirror.url, "echo hi", outpost.agent(depth=2))
    assert mirror.executor.about() == {"depth": 3.0}


async def test_a_task_that_fails_or_is_refused_is_an_error(outpost: Outpost, mirror: RemoteAgent) -> None:
    with pytest.raises(Conflict, match="the remote agent says failed: no idea"):
        await outpost.invoke(mirror.url, "fail no idea")
    with pytest.raises(Conflict, match="the remote agent says rejected: it gives no reason"):
        await outpost.invoke(mirror.url, "refuse")


async def test_the_next_message_answers_what_the_agent_asks(outpost: Outpost, mirror: RemoteAgent) -> None:
    asked = await outpost.result("invoke_remote_agent", agent_url=mirror.url, message="ask which colour?")
    assert asked.structured["state"] == "input-required"
    assert asked.text.startswith("It waits for an answer")
    assert asked.text.endswith("which colour?")
    done = await outpost.invoke(mirror.url, "echo blue")
    assert (done["answer"], done["task_id"]) == ("blue", asked.structured["task_id"])
    fresh = await outpost.invoke(mirror.url, "echo green")
    assert fresh["task_id"] != done["task_id"]


@pytest.mark.parametrize("binding", [{"session": None}, {"session": "ses-all", "shared": True}])
async def test_the_question_for_one_client_is_not_answered_by_another(
    outpost: Outpost, mirror: RemoteAgent, binding: dict[str, Any]
) -> None:
    actor = outpost.agent(**binding)
    asked = await outpost.result("invoke_remote_agent", actor, agent_url=mirror.url, message="ask which colour?")
    task = asked.structured["task_id"]
    assert asked.text.startswith(f"It waits for an answer: give task_id={task} with it.")
    other = await outpost.invoke(mirror.url, "echo something else", actor)
    assert other["task_id"] != task
    done = await outpost.invoke(mirror.url, "echo blue", actor, task_id=task)
    assert (done["answer"], done["task_id"]) == ("blue", task)


async def test_a_question_waits_until_its_answer_was_sent(make_outpost: MakeOutpost, mirror: RemoteAgent) -> None:
    asked = await make_outpost().invoke(mirror.url, "ask which colour?")
    with pytest.raises(PermissionDenied):
        await make_outpost(**UNTRUSTED).invoke(mirror.url, "echo blue")
    with pytest.raises(Conflict):
        await make_outpost().invoke(mirror.url, "echo green", task_id="unknown")
    done = await make_outpost().invoke(mirror.url, "echo blue")
    assert (done["answer"], done["task_id"]) == ("blue", asked["task_id"])


async def test_who_waits_is_told_how_far_it_is(outpost: Outpost, mirror: RemoteAgent) -> None:
    call = asyncio.create_task(outpost.invoke(mirror.url, "wait"))
    await asyncio.wait_for(mirror.executor.working.wait(), 20)
    while not any("Mirror is working: thinking" in text for text in outpost.client.messages("progress")):
        await asyncio.sleep(0.01)
    assert outpost.client.messages("status") == ["asking Mirror"]
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert len(mirror.executor.cancelled) == 1


async def test_time_that_is_over_cancels_the_task_there(outpost: Outpost, mirror: RemoteAgent) -> None:
    with pytest.raises(TimedOut, match=r"did not finish within 0.01 min"):
        await outpost.invoke(mirror.url, "wait", timeout_minutes=0.01)
    assert len(mirror.executor.cancelled) == 1


async def test_a_token_goes_to_its_host_and_to_no_other(make_outpost: MakeOutpost) -> None:
    async with remote_agent(token="s3cret") as agent, remote_agent() as other:
        with pytest.raises(ServiceUnavailable, match="401"):
            await make_outpost().invoke(agent.url, "echo hi")
        outpost = make_outpost(a2a_tokens=((agent.place, ("s3cret",)),))
        assert (await outpost.invoke(agent.url, "echo hi"))["answer"] == "hi"
        await outpost.invoke(other.url, "echo hi")
    assert "s3cret" not in str(other.heads)
    assert "s3cret" not in repr(outpost.platform.settings)


async def test_what_is_listed_is_what_the_seed_names(outpost: Outpost) -> None:
    tool = outpost.platform.registry.require("invoke_remote_agent")
    assert set(tool.input_schema["properties"]) == {"agent_url", "message"}
    assert HERE in outpost.platform.settings.a2a_allow[0]

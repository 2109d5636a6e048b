"""The bench for authors of plugins: is it the real thing, does it say what went wrong, and is nothing left of it?"""

import asyncio
import contextlib
import gc
import logging
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp.client.subscriptions import ToolsListChanged

from rookery.core.errors import ConfigurationError, InvalidParams, NotFound
from rookery.testing import ERAS, Asked, Bench, CallFailed, Era, Log, Progress, ToolFailed, open_bench
from tests.testing import sample_plugin

SOON_S = 20
DOMAINS = {"notes": sample_plugin}


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    async with open_bench(DOMAINS) as bench:
        yield bench


@pytest.fixture(params=ERAS)
def era(request: pytest.FixtureRequest) -> Era:
    return request.param


async def test_a_client_is_who_it_says_and_no_more(bench: Bench, era: Era) -> None:
    stranger = await bench.client("bob", permissions=["get_note"], era=era)
    with pytest.raises(ToolFailed) as refused:
        await stranger.call("save_note", name="a", text="b")
    assert (refused.value.code, refused.value.layer) == ("PERMISSION_DENIED", "role")
    assert refused.value.hint
    assert set(await stranger.tools()) == {"get_note"}
    ada = await bench.client("ada", era=era)
    assert "You are ada" in ada.instructions
    assert {"save_note", "ping"} < set(await ada.tools())
    assert "create_agent" not in await ada.tools()
    owner = await bench.client(as_owner=True, era=era)
    assert "create_agent" in await owner.tools()


async def test_a_profile_a_token_and_a_binding_narrow_a_client(bench: Bench, era: Era) -> None:
    judge = await bench.client("ada", profile="judge", era=era)
    assert "save_note" not in await judge.tools()
    reader = await bench.client("ada", scopes=["notes:read"], era=era)
    assert set(await reader.tools()) == {"get_note"}
    person = await bench.client(as_owner=True, scopes=["identity:*"], era=era)
    assert {"create_agent"} < set(await person.tools())
    assert "get_note" not in await person.tools()
    night = bench.actor(agent="ada", scheduler=True)
    assert (night.agent_name, night.unattended) == ("ada", True)


async def test_tenants_are_apart(bench: Bench, era: Era) -> None:
    ada, eve = await bench.client("ada", era=era), await bench.client("ada", tenant="other", era=era)
    await ada.call("save_note", name="a", text="mine")
    with pytest.raises(ToolFailed, match="there is no note a") as missing:
        await eve.call("get_note", name="a")
    assert (missing.value.code, missing.value.rpc) == ("NOT_FOUND", None)
    assert (await ada.call("get_note", name="a"))["text"] == "mine"


async def test_calls_are_audited_and_answers_have_both_faces(bench: Bench, era: Era) -> None:
    ada = await bench.client("ada", era=era)
    answer = await ada.call("save_note", name="a", text="b")
    assert answer.structured == {"name": "a", "text": "b"}
    assert answer.text == '{"name":"a","text":"b"}'
    assert [type(block) for block in answer.blocks] == [types.TextContent]
    records = (await bench.as_owner("list_audit_records"))["records"]
    assert any((record["tool"], record["outcome"]) == ("save_note", "done") for record in records)


async def test_an_unknown_tool_and_a_wrong_argument_say_what_is_wrong(bench: Bench, era: Era) -> None:
    ada = await bench.client("ada", era=era)
    with pytest.raises(ToolFailed, match="no_such_tool") as unknown:
        await ada.call("no_such_tool")
    assert (unknown.value.code, unknown.value.rpc) == ("NOT_FOUND", -32602)
    with pytest.raises(ToolFailed, match="text") as wrong:
        await ada.call("save_note", name="a")
    assert wrong.value.code == "INVALID_PARAMS"


async def test_a_bug_in_a_handler_is_in_the_log_and_not_in_the_answer(
    bench: Bench, era: Era, caplog: pytest.LogCaptureFixture
) -> None:
    ada = await bench.client("ada", era=era)
    with caplog.at_level(logging.ERROR), pytest.raises(ToolFailed) as failed:
        await ada.call("stumble")
    assert failed.value.code == "INTERNAL_ERROR"
    assert "secret" not in str(failed.value)
    assert "a secret of the handler" in caplog.text


async def test_grants_count_from_the_next_call_on_and_can_be_taken_back(bench: Bench, era: Era) -> None:
    ada = await bench.client("ada", era=era)
    assert "wait_forever" not in await ada.tools()
    await bench.grant("ada", "wait_forever")
    assert "wait_forever" in await ada.tools()
    await bench.revoke("ada", "wait_forever")
    assert "wait_forever" not in await ada.tools()


async def test_clients_hear_that_their_tools_changed(bench: Bench) -> None:
    old, new = await bench.client("ada"), await bench.client("ada", era="2026-07-28")
    await old.tools()
    await new.tools()
    async with new.sdk.listen(tools_list_changed=True) as changes:
        await bench.grant("ada", "wait_forever")
        await old.until("notifications/tools/list_changed")
        async with asyncio.timeout(SOON_S):
            assert isinstance(await anext(aiter(changes)), ToolsListChanged)


async def test_waiting_for_news_that_does_not_come_ends(bench: Bench) -> None:
    with pytest.raises(TimeoutError):
        await (await bench.client()).until("notifications/tools/list_changed", timeout_s=0.05)


async def test_the_person_fills_in_what_the_form_asks_for(bench: Bench, era: Era) -> None:
    asked = await bench.client("ada", era=era, elicit={"colour": "mauve", "size": 3})
    assert (await asked.call("ask_person"))["said"] == {"colour": "mauve"}
    assert asked.asked == [Asked("elicit", "Which colour?", sample_plugin.FORM)]


@pytest.mark.parametrize("refusal", ["decline", "cancel"])
async def test_the_person_may_refuse(bench: Bench, era: Era, refusal: Any) -> None:
    assert (await (await bench.client("ada", era=era, elicit=refusal)).call("ask_person"))["said"] is None


async def test_the_person_and_the_model_may_decide(bench: Bench, era: Era) -> None:
    async def person(asked: Asked) -> dict[str, str]:
        await asyncio.sleep(0)
        return {"colour": asked.message.upper()}

    ada = await bench.client("ada", era=era, elicit=person, sample=lambda asked: f"{asked.message}, {asked.system}")
    assert (await ada.call("ask_person"))["said"] == {"colour": "WHICH COLOUR?"}
    assert (await ada.call("ask_model"))["said"] == "Say something, Be short"
    assert [(asked.kind, asked.max_tokens) for asked in ada.asked] == [("elicit", None), ("sample", 7)]


async def test_the_folders_are_those_of_the_client(bench: Bench, era: Era) -> None:
    ada = await bench.client("ada", era=era, roots=["file:///work", "file:///play"])
    assert (await ada.call("ask_folders"))["said"] == ["file:///work", "file:///play"]


@pytest.mark.parametrize("tool", ["ask_person", "ask_model", "ask_folders"])
async def test_a_client_has_only_the_abilities_it_was_given(bench: Bench, era: Era, tool: str) -> None:
    with pytest.raises(ToolFailed) as failed:
        await (await bench.client("ada", era=era)).call(tool)
    assert (failed.value.rpc == -32021) == (era == "2026-07-28")


async def test_progress_and_logs_are_there_when_the_answer_is(bench: Bench, era: Era) -> None:
    ada = await bench.client("ada", era=era)
    for _ in range(20):
        ada.progress.clear()
        ada.logs.clear()
        assert (await ada.call("count_up"))["said"] == 3
        assert ada.progress == [Progress(step, 3, f"step {step}") for step in (1, 2, 3)]
        assert ada.logs == [Log("warning", f"at {step}", "counter") for step in (1, 2, 3)]
    quiet = await bench.client("ada", era=era, log_level="error")
    await quiet.call("count_up")
    assert quiet.logs == []


async def test_resources_and_prompts_are_read_and_listed(bench: Bench, era: Era) -> None:
    ada = await bench.client("ada", era=era)
    await ada.call("save_note", name="a", text="text")
    await ada.call("save_note", name="raw", text="bytes")
    found = await ada.read("notes://a")
    assert (found.text, found.data, found.mime_type) == ("text", b"", "text/plain")
    raw = await ada.read("notes://raw")
    assert (raw.text, raw.data) == ("", b"bytes")
    assert "notes://{name}" in await ada.templates()
    assert {"notes://a", "notes://raw"} <= set(await ada.resources())
    assert (await ada.prompt("think", name="a")).text == "Think about a."
    assert "think" in await ada.prompts()
    for failing in (ada.read("nowhere://a"), ada.prompt("no_such_prompt"), ada.complete("no_such_prompt", "name")):
        with pytest.raises(CallFailed) as failed:
            await failing
        assert failed.value.rpc is not None


async def test_time_passes_for_what_is_kept(bench: Bench) -> None:
    ada = await bench.client("ada")
    await ada.call("save_note", name="a", text="b", minutes=10)
    bench.pass_time(599)
    await ada.call("get_note", name="a")
    bench.pass_time(1)
    with pytest.raises(ToolFailed, match="no note"):
        await ada.call("get_note", name="a")


async def test_badly_declared_tools_are_found(bench: Bench) -> None:
    faults = bench.lint()
    assert any("ask_person: the description does not say" in fault for fault in faults)
    assert not any(name in fault for fault in faults for name in ("save_note", "ping", "resource note"))
    async with open_bench() as empty:
        assert empty.lint() == []


async def test_what_the_owner_may_not_do_is_refused_in_process_too(bench: Bench) -> None:
    await bench.client("ada")
    with pytest.raises(InvalidParams, match="for people"):
        await bench.grant("ada", "create_agent")


async def test_a_binding_that_makes_no_sense_is_refused_at_once(bench: Bench) -> None:
    with pytest.raises(InvalidParams, match="there is no agent type wizard"):
        await bench.client("ada", profile="wizard")
    with pytest.raises(NotFound, match="there is no project mars"):
        await bench.client("ada", project="mars")
    assert (await (await bench.client("ada")).call("ping"))["status"] == "pong"


async def test_settings_and_the_database_can_be_chosen(database_url: str) -> None:
    async with open_bench(DOMAINS, database=database_url, rate_calls_per_minute=2) as bench:
        ada = await bench.client("ada")
        await ada.call("save_note", name="a", text="b")
        await ada.call("get_note", name="a")
        with pytest.raises(ToolFailed) as limited:
            await ada.call("get_note", name="a")
        assert limited.value.code == "RATE_LIMITED"


async def test_a_plugin_that_cannot_be_loaded_says_why_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(ConfigurationError, match="declared twice"):
        async with open_bench({"one": sample_plugin, "two": sample_plugin}):
            pass
    assert list(tmp_path.iterdir()) == []


async def test_nothing_is_left_of_a_bench() -> None:
    async def use(hang: str) -> str:
        async with open_bench(DOMAINS) as bench:
            clients = [await bench.client("ada", era=era, elicit={"colour": "red"}) for era in ERAS]
            for ada in clients:
                await ada.call("ask_person")
            ada = clients[-1]
            await bench.grant("ada", "wait_forever")
            call = asyncio.create_task(ada.call("wait_forever" if hang else "ping"))
            async with asyncio.timeout(SOON_S):
                while hang and not ada.logs:
                    await asyncio.sleep(0.01)
            if hang == "cancelled":
                call.cancel()
            home = bench.platform.settings.home
        with contextlib.suppress(asyncio.CancelledError, ToolFailed):
            await call
        return home

    await use("")
    gc.collect()
    tasks, threads, files = len(asyncio.all_tasks()), threading.active_count(), len(os.listdir("/proc/self/fd"))
    for hang in ("", "cancelled", "left alone"):
        home = await asyncio.wait_for(use(hang), SOON_S)
        assert not Path(home).exists()
    gc.collect()
    assert len(asyncio.all_tasks()) == tasks
    assert threading.active_count() <= threads
    assert len(os.listdir("/proc/self/fd")) <= files


async def test_a_failing_test_is_told_what_failed_and_not_something_else() -> None:
    async def fail() -> None:
        async with open_bench(DOMAINS) as bench:
            await bench.client("ada")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail()


async def test_clients_may_be_opened_and_closed_by_different_tasks(bench: Bench, era: Era) -> None:
    ada, bob = await asyncio.gather(*(asyncio.create_task(bench.client(name, era=era)) for name in ("ada", "bob")))
    assert (await asyncio.create_task(ada.call("ping")))["status"] == "pong"
    await asyncio.create_task(ada.close())
    assert (await bob.call("ping"))["status"] == "pong"
    with pytest.raises(Exception, match=r".+"):
        await ada.call("ping")
    await ada.close()


def test_it_needs_no_test_framework() -> None:
    program = (
        "import asyncio, sys\n"
        "from rookery.testing import open_bench\n"
        "async def main():\n"
        "    async with open_bench() as bench:\n"
        "        return (await (await bench.client()).call('ping'))['status']\n"
        "print(asyncio.run(main()), 'pytest' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == ["pong", "False"]

"""The resource echo://{message}."""

from urllib.parse import quote

import pytest

from rookery.testing import Bench, CallFailed, Era

TEMPLATE = "echo://{message}"
NOT_FOUND = {"2025-11-25": -32002, "2026-07-28": -32602}


async def test_who_lacks_the_tool_has_no_resource_either(bench: Bench, era: Era) -> None:
    bob = await bench.client("bob", permissions=["ping"], era=era)
    assert TEMPLATE not in await bob.templates()
    with pytest.raises(CallFailed) as refused:
        await bob.read("echo://hi")
    assert refused.value.rpc == NOT_FOUND[era]


async def test_a_token_needs_the_scope(bench: Bench, era: Era) -> None:
    without = await bench.client("ada", scopes=["resource:other:read"], era=era)
    with pytest.raises(CallFailed) as refused:
        await without.read("echo://hi")
    assert refused.value.rpc == NOT_FOUND[era]
    for scope in ("resource:echo:read", "resource:echo:*", "resource:*", "echo:read"):
        able = await bench.client("ada", scopes=[scope], era=era)
        assert (await able.read("echo://hi")).text == "Echo: hi"


@pytest.mark.parametrize("message", ["hi", "two words", "ä💥", "100%", "a?b#c&d", "x" * 200])
async def test_the_message_of_the_address_comes_back(bench: Bench, era: Era, message: str) -> None:
    ada = await bench.client("ada", era=era)
    contents = await ada.read(f"echo://{quote(message, safe='')}")
    assert (contents.text, contents.mime_type) == (f"Echo: {message}", "text/plain")


@pytest.mark.parametrize("uri", ["echo://", "echo://a/b", "echo://..", "echo://%2e%2e", "echo://a%00", "other://hi"])
async def test_an_address_that_plays_tricks_leads_nowhere(bench: Bench, era: Era, uri: str) -> None:
    ada = await bench.client("ada", era=era)
    with pytest.raises(CallFailed) as refused:
        await ada.read(uri)
    assert refused.value.rpc == NOT_FOUND[era]


async def test_it_is_listed_as_a_template(bench: Bench, era: Era) -> None:
    template = (await (await bench.client("ada", era=era)).templates())[TEMPLATE]
    assert (template.name, template.title, template.mime_type) == ("echo", "Echo", "text/plain")

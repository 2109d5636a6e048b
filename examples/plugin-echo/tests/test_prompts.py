"""The prompt code_review."""

import pytest

from rookery.testing import Bench, CallFailed, Era


async def test_who_lacks_the_tool_has_no_prompt_either(bench: Bench, era: Era) -> None:
    bob = await bench.client("bob", permissions=["ping"], era=era)
    assert "code_review" not in await bob.prompts()
    with pytest.raises(CallFailed):
        await bob.prompt("code_review")
    with pytest.raises(CallFailed):
        await bob.complete("code_review", "language", "p")


async def test_it_asks_for_what_was_wanted(bench: Bench, era: Era) -> None:
    ada = await bench.client("ada", era=era)
    plain = await ada.prompt("code_review")
    assert plain.text.startswith("Review the following code. Look for faults")
    assert [message.role for message in plain.messages] == ["user"]
    wanted = await ada.prompt("code_review", language="python", focus="security", include_examples="true")
    assert wanted.text.startswith("Review the following python. Look for ways to misuse it")
    assert wanted.text.endswith("Show better code for each point.")


async def test_wrong_arguments_are_named(bench: Bench, era: Era) -> None:
    ada = await bench.client("ada", era=era)
    for wrong in ({"focus": "all"}, {"include_examples": "perhaps"}, {"more": "1"}):
        with pytest.raises(CallFailed, match=next(iter(wrong))) as failed:
            await ada.prompt("code_review", **wrong)
        assert failed.value.rpc == -32602


async def test_its_arguments_are_listed_and_completed(bench: Bench, era: Era) -> None:
    ada = await bench.client("ada", era=era)
    listed = (await ada.prompts())["code_review"].arguments or []
    assert [(each.name, bool(each.required)) for each in listed] == [
        ("language", False),
        ("focus", False),
        ("include_examples", False),
    ]
    assert await ada.complete("code_review", "language", "P") == ["php", "python"]
    assert await ada.complete("code_review", "language", "x") == []
    assert await ada.complete("code_review", "focus", "s") == ["security", "style"]
    assert set(await ada.complete("code_review", "include_examples")) == {"true", "false"}

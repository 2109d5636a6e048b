"""madlibs_elicitation and code_review_sampling: tools that ask the client back."""

from typing import Any

import pytest

from rookery.testing import Asked, Bench, CallFailed, Era, ToolFailed

WORDS = {"noun": "rook", "verb": "jumped", "adjective": "quick"}
STORY = "The quick rook jumped over the lazy dog."


async def test_an_agent_without_a_grant_is_refused(bench: Bench, era: Era) -> None:
    ada = await bench.client("ada", era=era, elicit=WORDS, sample="Fine.")
    for tool, arguments in (("madlibs_elicitation", {}), ("code_review_sampling", {"code": "x = 1"})):
        with pytest.raises(ToolFailed) as refused:
            await ada.call(tool, **arguments)
        assert refused.value.layer == "role"
    assert ada.asked == []


async def test_nobody_is_asked_where_nobody_is(bench: Bench, era: Era) -> None:
    night = await bench.client("ada", era=era, elicit=WORDS, scheduler=True)
    await bench.grant("ada", "madlibs_elicitation")
    with pytest.raises(ToolFailed) as refused:
        await night.call("madlibs_elicitation", **WORDS)
    assert refused.value.layer == "unattended"


@pytest.mark.parametrize("tool", ["madlibs_elicitation", "code_review_sampling"])
async def test_a_client_that_cannot_be_asked_is_told_so(bench: Bench, era: Era, tool: str) -> None:
    owner = await bench.client(as_owner=True, era=era)
    with pytest.raises(CallFailed) as failed:
        await owner.call(tool, **({"code": "x = 1"} if tool == "code_review_sampling" else {}))
    if era == "2025-11-25":
        assert (failed.value.code, failed.value.rpc) == ("SERVICE_UNAVAILABLE", None)
        assert failed.value.hint
    else:
        assert failed.value.rpc == -32021
        assert failed.value.told["requiredCapabilities"]


async def test_the_person_gives_the_words_that_are_missing(bench: Bench, era: Era) -> None:
    owner = await bench.client(as_owner=True, era=era, elicit=WORDS)
    answer = await owner.call("madlibs_elicitation", verb="slept")
    assert answer.text == "The quick rook slept over the lazy dog."
    (asked,) = owner.asked
    assert list(asked.schema["properties"]) == asked.schema["required"] == ["noun", "adjective"]


async def test_nobody_is_asked_for_words_that_are_there(bench: Bench, era: Era) -> None:
    owner = await bench.client(as_owner=True, era=era)
    answer = await owner.call("madlibs_elicitation", **WORDS)
    assert (answer.text, answer["noun"]) == (STORY, "rook")
    assert owner.asked == []


@pytest.mark.parametrize("refusal", ["decline", "cancel"])
async def test_a_person_may_refuse(bench: Bench, era: Era, refusal: Any) -> None:
    owner = await bench.client(as_owner=True, era=era, elicit=refusal)
    with pytest.raises(ToolFailed, match="gave no words") as failed:
        await owner.call("madlibs_elicitation")
    assert failed.value.hint == "call again with noun, verb and adjective"


@pytest.mark.parametrize("word", ["", "x" * 101, 7, None], ids=["empty", "long", "number", "none"])
async def test_an_unusable_answer_is_an_error_that_names_the_word(bench: Bench, era: Era, word: Any) -> None:
    owner = await bench.client(as_owner=True, era=era, elicit=lambda asked: {**WORDS, "noun": word})
    with pytest.raises(CallFailed):
        await owner.call("madlibs_elicitation")
    assert (await owner.call("madlibs_elicitation", **WORDS)).text == STORY


async def test_the_clients_model_reviews(bench: Bench, era: Era) -> None:
    def model(asked: Asked) -> str:
        assert "x = 1" in asked.message
        return f"{asked.max_tokens} tokens of praise"

    owner = await bench.client(as_owner=True, era=era, sample=model)
    answer = await owner.call("code_review_sampling", code="x = 1", language="python", focus="style", max_tokens=100)
    assert answer["review"] == "100 tokens of praise"
    assert answer.text.startswith("## Review (style)")
    (asked,) = owner.asked
    assert asked.message.startswith("Review this python for style issues")
    assert asked.system


@pytest.mark.parametrize(
    "wrong",
    [{"code": ""}, {"code": "x" * 10_001}, {"max_tokens": 99}, {"focus": "all"}],
    ids=["empty", "long", "short answer", "focus"],
)
async def test_wrong_arguments_ask_nobody(bench: Bench, era: Era, wrong: dict[str, Any]) -> None:
    owner = await bench.client(as_owner=True, era=era, sample="Fine.")
    with pytest.raises(ToolFailed) as failed:
        await owner.call("code_review_sampling", **{"code": "x = 1", **wrong})
    assert failed.value.code == "INVALID_PARAMS"
    assert owner.asked == []

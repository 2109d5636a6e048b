"""echo_message, image_test and data_explorer."""

import struct
import zlib
from base64 import b64decode
from datetime import datetime
from typing import Any

import mcp_types as types
import pytest
from rookery_echo.picture import SIGNATURE

from rookery.testing import Bench, Era, ToolFailed


async def test_an_agent_without_the_tool_is_refused(bench: Bench, era: Era) -> None:
    bob = await bench.client("bob", permissions=[], era=era)
    for tool, arguments in (("echo_message", {"message": "hi"}), ("image_test", {}), ("data_explorer", {})):
        with pytest.raises(ToolFailed) as refused:
            await bob.call(tool, **arguments)
        assert (refused.value.code, refused.value.layer) == ("PERMISSION_DENIED", "role")


async def test_a_token_needs_the_scope(bench: Bench, era: Era) -> None:
    without = await bench.client("ada", scopes=["system:read"], era=era)
    with pytest.raises(ToolFailed) as refused:
        await without.call("echo_message", message="hi")
    assert refused.value.layer == "scopes"
    for scope in ("echo:read", "echo:*", "tool:echo_message"):
        able = await bench.client("ada", scopes=[scope], era=era)
        assert (await able.call("echo_message", message="hi")).text == "hi"


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"message": "Hi"}, "Hi"),
        ({"message": "Hi", "mode": "uppercase"}, "HI"),
        ({"message": "Hi", "mode": "lowercase", "repeat": 3}, "hi hi hi"),
        ({"message": "ä\u2028💥"}, "ä\u2028💥"),
        ({"message": "x" * 1000, "repeat": 5}, " ".join(["x" * 1000] * 5)),
    ],
    ids=["plain", "upper", "lower", "odd", "longest"],
)
async def test_a_message_comes_back_as_wanted(bench: Bench, era: Era, arguments: dict[str, Any], text: str) -> None:
    ada = await bench.client("ada", era=era)
    answer = await ada.call("echo_message", **arguments)
    assert answer.text == text
    assert answer["original_message"] == arguments["message"]
    assert (answer["repeated_message"], answer["timestamp"]) == (text, None)


async def test_it_says_when_if_asked(bench: Bench, era: Era) -> None:
    answer = await (await bench.client("ada", era=era)).call("echo_message", message="hi", include_timestamp=True)
    assert datetime.fromisoformat(answer["timestamp"]).tzinfo is not None
    assert answer["timestamp"] in answer.text


async def test_the_message_that_asks_for_an_error_gets_one(bench: Bench, era: Era) -> None:
    ada = await bench.client("ada", era=era)
    with pytest.raises(ToolFailed, match="asked for an error") as failed:
        await ada.call("echo_message", message="TRIGGER_ERROR")
    assert (failed.value.code, failed.value.hint) == ("VALIDATION_ERROR", "send any other message")
    assert (await ada.call("echo_message", message="trigger_error")).text == "trigger_error"


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({}, "message"),
        ({"message": ""}, "message"),
        ({"message": "x" * 1001}, "message"),
        ({"message": "hi", "mode": "loud"}, "mode"),
        ({"message": "hi", "repeat": 0}, "repeat"),
        ({"message": "hi", "repeat": 6}, "repeat"),
        ({"message": "hi", "more": 1}, "more"),
    ],
    ids=["absent", "empty", "long", "mode", "never", "often", "unknown"],
)
async def test_wrong_arguments_are_named(bench: Bench, era: Era, arguments: dict[str, Any], field: str) -> None:
    ada = await bench.client("ada", era=era)
    with pytest.raises(ToolFailed, match=field) as failed:
        await ada.call("echo_message", **arguments)
    assert failed.value.code == "INVALID_PARAMS"


async def test_a_picture_is_a_picture(bench: Bench, era: Era) -> None:
    answer = await (await bench.client("ada", era=era)).call("image_test", size=16)
    (image,) = [block for block in answer.blocks if isinstance(block, types.ImageContent)]
    data = b64decode(image.data)
    assert image.mime_type == answer["mime_type"] == "image/png"
    assert data.startswith(SIGNATURE)
    assert struct.unpack(">II", data[16:24]) == (16, 16)
    pixels = data[data.index(b"IDAT") + 4 : data.index(b"IEND") - 8]
    assert len(zlib.decompress(pixels)) == 16 * (1 + 3 * 16)
    assert "16 by 16" in answer.text


async def test_figures_come_as_a_table_in_markdown(bench: Bench, era: Era) -> None:
    ada = await bench.client("ada", era=era)
    answer = await ada.call("data_explorer", row_count=5)
    assert answer.text.startswith("## Sales\n\n| Region |")
    assert len([line for line in answer.text.splitlines() if line.startswith("|")]) == 2 + 5
    assert answer["total_revenue"] == pytest.approx(sum(row["revenue"] for row in answer["rows"]))
    assert (await ada.call("data_explorer", row_count=5)).structured == answer.structured
    for wrong in (4, 101):
        with pytest.raises(ToolFailed, match="row_count"):
            await ada.call("data_explorer", row_count=wrong)

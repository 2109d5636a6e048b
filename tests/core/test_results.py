"""What a call gives back can be sent and read, whatever is in it."""

import json
from typing import Any

import mcp_types as types
import pytest

from rookery.core.results import make_result
from rookery.core.tool import ToolOutput
from rookery.server.streamable.answers import encode
from rookery.server.wire import _encode


class Names(ToolOutput):
    names: list[str]
    by_name: dict[str, Any]


class Told(Names):
    def as_text(self) -> str:
        return " ".join(self.names)


HALF = {"names": ["fine", "half\ud800", "\udfff"], "by_name": {"k": ["\ud800"]}}


@pytest.mark.parametrize("kind", [Names, Told])
def test_half_a_pair_of_surrogates_reaches_the_client_as_a_question_mark(kind: type[Names]) -> None:
    result = make_result(kind(**HALF))
    readable = {"names": ["fine", "half?", "?"], "by_name": {"k": ["?"]}}
    content = {"content": [{"type": "text", "text": result.text}], "structuredContent": result.structured}
    sent = types.JSONRPCResponse(jsonrpc="2.0", id=1, result=content)
    for line in (_encode(sent), encode({"result": content})):
        assert json.loads(line.decode())["result"]["structuredContent"] == readable
        assert b"ud800" not in line
        assert "half?" in json.loads(line)["result"]["content"][0]["text"]

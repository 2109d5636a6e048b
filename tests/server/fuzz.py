"""Lines that no client should send, and what each of them is owed."""

import json
import random
import re
from collections import Counter
from collections.abc import Callable
from typing import Any

from pydantic_core import from_json

NOTHING: frozenset[Any] = frozenset()
TOOLS = ["ping", "measure_text", "get_server_info", "list_notes", "corvid_ping", "no_such_tool", "create_agent"]
METHODS = ["tools/call", "tools/list", "ping", "initialize", "server/discover", "prompts/list", "subscriptions/listen"]
NOTIFICATIONS = ["initialized", "progress", "roots/list_changed", "no/such", "message", "cancelled"]
ODD: list[Any] = [None, True, False, 0, -1, 1.5, -0.0, 10**400, 10**30, "", "x", "ü\u2028", [], [1], {}, {"a": 1}]
# A cancelled request gets no answer, so these are the ids of none.
NOBODY: list[Any] = [None, True, 1.5, [], {"a": 1}, "nobody", 10**60, -7]
ODD_IDS = ["1e400", "-1e400", "NaN", "-0", "1.0", "null", "[[]]", "1" + "0" * 400, "9" * 5000, '"\\ud800"', '"\\u0000"']


def owed(line: bytes) -> Counter[Any]:
    """The ids of the answers that the line must get, None for the null of JSON-RPC, by a reading of our own."""
    if not line.strip():
        return Counter()
    try:
        value = json.loads(line.decode(errors="replace"), strict=False)
    except RecursionError:
        # Nested too deeply to be read here as well; its id is looked for where the requests below have it.
        found = re.match(rb'\s*\{"jsonrpc": "2.0", "id": (\d+)', line)
        return Counter([int(found[1]) if found else None])
    except ValueError:
        return Counter([None])
    if not isinstance(value, dict):
        return Counter([None])
    given = value.get("id")
    usable = isinstance(given, int | str) and not isinstance(given, bool)
    if "method" not in value and ("result" in value or "error" in value):
        return Counter()
    if usable or "id" in value:
        return Counter([given if usable else None])
    return Counter() if is_notification(line, value) else Counter([None])


def is_notification(line: bytes, value: dict[str, Any]) -> bool:
    try:
        from_json(line)
    except ValueError:
        return False
    params = value.get("params")
    return (
        value.get("jsonrpc") == "2.0"
        and isinstance(value.get("method"), str)
        and (params is None or isinstance(params, dict))
    )


class Fuzzer:
    """An endless source of lines, the same for the same seed. Their ids never repeat unless they are odd ones."""

    def __init__(self, seed: int, meta: dict[str, Any] | None = None) -> None:
        self.chance = random.Random(seed)
        self.meta = meta
        self.count = 0
        self.kinds: list[Callable[[], bytes]] = [
            self.valid,
            self.noise,
            self.truncated,
            self.flipped,
            self.wrong_type,
            self.wrong_params,
            self.batch,
            self.odd_id,
            self.notification,
            self.response,
            self.doubled_keys,
            self.spaced,
            self.not_text,
            self.nested,
            self.scalar,
        ]

    def line(self) -> bytes:
        """One line without its newline."""
        return self.chance.choice(self.kinds)().replace(b"\n", b" ")

    def message(self) -> dict[str, Any]:
        """A request that would be in order."""
        self.count += 1
        name = self.chance.choice(TOOLS)
        arguments = {"text": "t" * self.chance.randrange(50)} if name == "measure_text" else {}
        method = self.chance.choice(["tools/call", "tools/call", *METHODS])
        params: dict[str, Any] = {"name": name, "arguments": arguments} if method == "tools/call" else {}
        if self.meta is not None:
            params["_meta"] = self.meta
        # A number and its digits are one id to the SDK, so only numbers are used.
        return {"jsonrpc": "2.0", "id": self.count + 1_000_000, "method": self.allowed(method), "params": params}

    def allowed(self, method: str) -> str:
        # A subscription of the newest revision is answered when it ends.
        return "ping" if self.meta is not None and method == "subscriptions/listen" else method

    def odd(self) -> Any:
        return self.chance.choice(ODD)

    def valid(self) -> bytes:
        return json.dumps(self.message(), ensure_ascii=self.chance.random() < 0.5).encode()

    def noise(self) -> bytes:
        return self.chance.randbytes(self.chance.randrange(200))

    def truncated(self) -> bytes:
        line = self.valid()
        return line[: self.chance.randrange(len(line))]

    def flipped(self) -> bytes:
        line = bytearray(self.valid())
        for _ in range(self.chance.randrange(1, 4)):
            line[self.chance.randrange(len(line))] = self.chance.randrange(256)
        return bytes(line)

    def wrong_type(self) -> bytes:
        message = self.message()
        key = self.chance.choice(["jsonrpc", "id", "method", "params"])
        if self.chance.random() < 0.3:
            del message[key]
        else:
            message[key] = self.odd()
        return json.dumps(message).encode()

    def wrong_params(self) -> bytes:
        message = self.message()
        key = self.chance.choice(["name", "arguments", "_meta", "cursor", "protocolVersion", "x" * 300])
        message["params"][key] = self.odd()
        return json.dumps(message).encode()

    def batch(self) -> bytes:
        return json.dumps([self.message() for _ in range(self.chance.randrange(4))]).encode()

    def odd_id(self) -> bytes:
        text = json.dumps({**self.message(), "id": "HERE"})
        return text.replace('"HERE"', self.chance.choice(ODD_IDS)).encode()

    def notification(self) -> bytes:
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": f"notifications/{self.chance.choice(NOTIFICATIONS)}"}
        if self.chance.random() < 0.7:
            message["params"] = self.chance.choice(
                [{}, {"requestId": self.chance.choice(NOBODY)}, {"progressToken": 1, "progress": 1}]
            )
        if self.chance.random() < 0.2:
            message["params"] = self.odd()
        return json.dumps(message).encode()

    def response(self) -> bytes:
        body = self.chance.choice([{"result": {}}, {"result": self.odd()}, {"error": {"code": 1, "message": "m"}}])
        return json.dumps({"jsonrpc": "2.0", "id": self.chance.choice([1, "1", self.odd()]), **body}).encode()

    def doubled_keys(self) -> bytes:
        first, second = self.message(), self.message()
        return json.dumps(first)[:-1].encode() + b"," + json.dumps(second)[1:].encode()

    def spaced(self) -> bytes:
        line = self.chance.choice([self.valid(), b"", b""])
        return self.chance.choice([b"", b"  ", b"\t", b"\r"]) + line + self.chance.choice([b"\r", b" \t", b"", b"x"])

    def not_text(self) -> bytes:
        bad = self.chance.choice([b"\xff", b"\xc3\x28", b"\x00", b"\x1f", b"\xed\xa0\x80", b"\\ud800", b"\xef\xbb\xbf"])
        line = self.valid()
        place = self.chance.choice([0, line.find(b'"method"') + 12, len(line)])
        return line[:place] + bad + line[place:]

    def nested(self) -> bytes:
        depth = self.chance.choice([10, 150, 250, 600, 3000])
        inner = self.chance.choice(["[" * depth + "]" * depth, '{"a":' * depth + "1" + "}" * depth])
        return json.dumps({**self.message(), "params": "HERE"}).replace('"HERE"', inner).encode()

    def scalar(self) -> bytes:
        return json.dumps(self.odd()).encode()

"""A model that follows a script, on loopback: enough of the Messages API for Claude Code to hold a session."""

import json
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from typing import Any, NamedTuple

Block = dict[str, Any]
PATIENCE_S = 60.0


class Use(NamedTuple):
    """One tool that the model wants to use."""

    tool: str
    arguments: dict[str, Any]


class Say(NamedTuple):
    """Words, which end the turn unless a tool is used in the same answer."""

    text: str


class Think(NamedTuple):
    """What the model thinks before it goes on."""

    text: str


class Fail(NamedTuple):
    """The service answers with an error instead; after so many `times`, None for ever, it goes on with `then`."""

    status: int
    message: str = "scripted"
    times: int | None = None
    then: "Part | tuple[Part, ...]" = Say("well again")


class Cut(NamedTuple):
    """The connection breaks off in the middle of an answer."""


class Hold(NamedTuple):
    """The answer comes when `released` is set, and `reached` says that somebody waits for it."""

    reached: threading.Event
    released: threading.Event
    then: "Part | tuple[Part, ...]" = Say("at last")


Part = Use | Say | Think
Step = Part | tuple[Part, ...] | Fail | Cut | Hold
"""One answer: a block, several blocks, or what goes wrong with it."""


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        # Whoever is interrupted or killed does not wait for the answer.
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class ScriptedModel:
    """Gives the answers of its script one by one and ends by repeating the last result.

    How far it is, it reads from the conversation, so a request that is sent twice gets the same answer twice.
    """

    def __init__(self, *script: Step) -> None:
        self.script = script
        self.offered: list[set[str]] = []
        """The names of the tools in each request."""
        self.requests: list[dict[str, Any]] = []
        """What it was asked, each as it came."""
        self.headers: list[dict[str, str]] = []
        self.gone = False
        self._failed = Counter[int]()
        self._answers = count(1)
        self._server = _Server(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> "ScriptedModel":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.hang_up()

    def hang_up(self) -> None:
        """Take no connection any more, and answer on none that is open."""
        self.gone = True
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)

    def turn(self, request: dict[str, Any]) -> "list[Block] | Fail | Cut":
        """The blocks with which the model goes on, or what happens instead."""
        tools = {tool["name"] for tool in request.get("tools") or ()}
        self.offered.append(tools)
        self.requests.append(request)
        answered = sum(message["role"] == "assistant" for message in request["messages"])
        if answered < len(self.script) and tools:
            return self._play(answered, self.script[answered])
        results = [block for block in _blocks(request) if block.get("type") == "tool_result"]
        return [{"type": "text", "text": _text(results[-1]) if results else "no tool was used"}]

    def _play(self, number: int, step: Step) -> "list[Block] | Fail | Cut":
        if isinstance(step, Hold):
            step.reached.set()
            assert step.released.wait(PATIENCE_S)
            return self._play(number, step.then)
        if isinstance(step, Fail) and step.times is not None and self._failed[number] >= step.times:
            return self._play(number, step.then)
        if isinstance(step, Fail | Cut):
            self._failed[number] += 1
            return step
        parts = (step,) if isinstance(step, Part) else step
        return [_block(part, f"toolu_{number}_{place}") for place, part in enumerate(parts)]

    def message(self, request: dict[str, Any], content: list[Block], stop: str | None) -> dict[str, Any]:
        """An answer of the service around these blocks."""
        usage = {"input_tokens": 1, "output_tokens": 1}
        about = {"id": f"msg_{next(self._answers)}", "type": "message", "role": "assistant", "model": request["model"]}
        return {**about, "content": content, "stop_reason": stop, "stop_sequence": None, "usage": usage}


def _block(part: Part, call_id: str) -> Block:
    match part:
        case Use(tool, arguments):
            return {"type": "tool_use", "id": call_id, "name": tool, "input": arguments}
        case Think(text):
            return {"type": "thinking", "thinking": text, "signature": "signed"}
        case Say(text):
            return {"type": "text", "text": text}


def _blocks(request: dict[str, Any]) -> Iterator[Block]:
    for message in request["messages"]:
        if isinstance(message["content"], list):
            yield from message["content"]


def _text(result: Block) -> str:
    content = result.get("content") or ""
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def _events(message: dict[str, Any], blocks: list[Block], stop: str) -> Iterator[dict[str, Any]]:
    """The same answer piece by piece."""
    yield {"type": "message_start", "message": message}
    for index, block in enumerate(blocks):
        match block["type"]:
            case "tool_use":
                empty = {**block, "input": {}}
                deltas = [{"type": "input_json_delta", "partial_json": json.dumps(block["input"])}]
            case "thinking":
                empty = {**block, "thinking": "", "signature": ""}
                deltas = [
                    {"type": "thinking_delta", "thinking": block["thinking"]},
                    {"type": "signature_delta", "signature": block["signature"]},
                ]
            case _:
                empty, deltas = {**block, "text": ""}, [{"type": "text_delta", "text": block["text"]}]
        yield {"type": "content_block_start", "index": index, "content_block": empty}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    yield {"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 1}}
    yield {"type": "message_stop"}


def _lines(events: Iterator[dict[str, Any]]) -> bytes:
    return "".join(f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in events).encode()


def _handler(model: ScriptedModel) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name is inherited
            return

        def do_HEAD(self) -> None:
            self._send(b"")

        def do_GET(self) -> None:
            self._send(b"{}")

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if model.gone:
                self.close_connection = True
                return
            match self.path.partition("?")[0]:
                case "/v1/messages":
                    model.headers.append({name.lower(): value for name, value in self.headers.items()})
                    self._answer(json.loads(body))
                case "/v1/messages/count_tokens":
                    self._send(b'{"input_tokens": 1}')
                case _:
                    self._send(b"{}")

        def _answer(self, request: dict[str, Any]) -> None:
            blocks = model.turn(request)
            match blocks:
                case Fail(status, message):
                    error = {"type": "error", "error": {"type": "api_error", "message": message}}
                    self._send(json.dumps(error).encode(), status=status)
                case Cut():
                    self._break_off(request)
                case _:
                    self._tell(request, blocks)

        def _tell(self, request: dict[str, Any], blocks: list[Block]) -> None:
            stop = "tool_use" if any(block["type"] == "tool_use" for block in blocks) else "end_turn"
            if not request.get("stream"):
                self._send(json.dumps(model.message(request, blocks, stop)).encode())
                return
            told = _events(model.message(request, [], None), blocks, stop)
            self._send(_lines(told), "text/event-stream")

        def _break_off(self, request: dict[str, Any]) -> None:
            told = _lines(iter([{"type": "message_start", "message": model.message(request, [], None)}]))
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Content-Length", str(len(told) + 1))
            self.end_headers()
            self.wfile.write(told)
            self.close_connection = True

        def _send(self, body: bytes, kind: str = "application/json", status: int = 200) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

    return Handler

"""A model that follows a script, on loopback: enough of the Messages API for Claude Code to hold a session."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

Block = dict[str, Any]


class Use(NamedTuple):
    """One tool that the model wants to use."""

    tool: str
    arguments: dict[str, Any]


class ScriptedModel:
    """Wants the tools of its script one by one and ends by repeating the last result.

    How far it is, it reads from the conversation, so a request that is sent twice gets the same answer twice.
    """

    def __init__(self, *script: Use) -> None:
        self.script = script
        self.offered: list[set[str]] = []
        """The names of the tools in each request."""
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> "ScriptedModel":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)

    def turn(self, request: dict[str, Any]) -> Block:
        """The one block with which the model goes on."""
        tools = {tool["name"] for tool in request.get("tools") or ()}
        self.offered.append(tools)
        results = [block for block in _blocks(request) if block.get("type") == "tool_result"]
        if len(results) < len(self.script) and tools:
            use = self.script[len(results)]
            return {"type": "tool_use", "id": f"toolu_{len(results)}", "name": use.tool, "input": use.arguments}
        return {"type": "text", "text": _text(results[-1]) if results else "no tool was used"}


def _blocks(request: dict[str, Any]) -> Iterator[Block]:
    for message in request["messages"]:
        if isinstance(message["content"], list):
            yield from message["content"]


def _text(result: Block) -> str:
    content = result.get("content") or ""
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def _message(request: dict[str, Any], content: list[Block], stop: str | None) -> dict[str, Any]:
    usage = {"input_tokens": 1, "output_tokens": 1}
    about = {"id": "msg_1", "type": "message", "role": "assistant", "model": request["model"]}
    return {**about, "content": content, "stop_reason": stop, "stop_sequence": None, "usage": usage}


def _events(request: dict[str, Any], block: Block, stop: str) -> Iterator[dict[str, Any]]:
    """The same answer piece by piece."""
    yield {"type": "message_start", "message": _message(request, [], None)}
    if block["type"] == "tool_use":
        empty = {**block, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
    else:
        empty, delta = {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}
    yield {"type": "content_block_start", "index": 0, "content_block": empty}
    yield {"type": "content_block_delta", "index": 0, "delta": delta}
    yield {"type": "content_block_stop", "index": 0}
    yield {"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 1}}
    yield {"type": "message_stop"}


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
            match self.path.partition("?")[0]:
                case "/v1/messages":
                    self._answer(json.loads(body))
                case "/v1/messages/count_tokens":
                    self._send(b'{"input_tokens": 1}')
                case _:
                    self._send(b"{}")

        def _answer(self, request: dict[str, Any]) -> None:
            block = model.turn(request)
            stop = "tool_use" if block["type"] == "tool_use" else "end_turn"
            if not request.get("stream"):
                self._send(json.dumps(_message(request, [block], stop)).encode())
                return
            told = _events(request, block, stop)
            lines = (f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in told)
            self._send("".join(lines).encode(), "text/event-stream")

        def _send(self, body: bytes, kind: str = "application/json") -> None:
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

    return Handler

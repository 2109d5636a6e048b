"""What no Python server beats over HTTP: uvicorn and the standard library's json, no SDK and no sessions.

`python asgi_floor.py COUNT PORT json|sse stateful|stateless`
"""

import json
import sys
import time
from typing import Any

import uvicorn

KINDS = {"json": b"application/json", "sse": b"text/event-stream"}


def result_of(request: dict[str, Any]) -> dict[str, Any]:
    if request["method"] == "initialize":
        info = {"name": "floor", "version": "1"}
        version = request["params"]["protocolVersion"]
        return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
    content = {"status": "pong", "timestamp": time.time()}
    return {"content": [{"type": "text", "text": json.dumps(content)}], "structuredContent": content}


def body_of(request: dict[str, Any], answers: str) -> bytes:
    if "id" not in request:
        return b""
    answer = {"jsonrpc": "2.0", "id": request["id"], "result": result_of(request)}
    body = json.dumps(answer, separators=(",", ":")).encode()
    return b"event: message\r\ndata: " + body + b"\r\n\r\n" if answers == "sse" else body


def make_app(answers: str) -> Any:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        body, more = b"", True
        while more:
            part = await receive()
            body, more = body + part["body"], part["more_body"]
        answer = body_of(json.loads(body), answers)
        headers = [(b"content-type", KINDS[answers])]
        if answers == "json" or not answer:
            headers.append((b"content-length", str(len(answer)).encode()))
        status = 200 if answer else 202
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": answer})

    return app


if __name__ == "__main__":
    uvicorn.run(
        make_app(sys.argv[3]),
        port=int(sys.argv[2]),
        loop="uvloop",
        http="httptools",
        lifespan="off",
        access_log=False,
        log_level="warning",
    )

"""What no Python server beats: a loop of lines with the standard library's json: `python floor.py COUNT`."""

import json
import sys
import time
from typing import Any


def result_of(method: str, params: dict[str, Any], count: int) -> dict[str, Any]:
    if method == "initialize":
        info = {"name": "floor", "version": "1"}
        return {
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": info,
        }
    if method == "tools/list":
        names = ["ping", "note", *(f"change_item_{number}" for number in range(count - 2))]
        return {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in names]}
    content = {"status": "pong", "timestamp": time.time()}
    return {"content": [{"type": "text", "text": json.dumps(content)}], "structuredContent": content}


def main(count: int) -> None:
    for line in sys.stdin.buffer:
        request = json.loads(line)
        if "id" not in request:
            continue
        result = result_of(request["method"], request.get("params", {}), count)
        answer = json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}, separators=(",", ":"))
        sys.stdout.write(answer + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(int(sys.argv[1]))

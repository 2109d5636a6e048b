"""Event streams and nothing else: `python sse_floor.py STREAMS` on uvicorn, from memory, for anybody.

Prints its port as JSON. For each line `RATE SECONDS` on standard input every stream gets RATE events a second for so
long, each at a moment of its own; then how many were sent and the CPU used so far are printed.
"""

import asyncio
import json
import sys
import time
from typing import Any

import uvicorn

QUEUES: list["asyncio.Queue[bytes]"] = []
HEADERS = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-cache")]


async def app(scope: Any, receive: Any, send: Any) -> None:
    queue: asyncio.Queue[bytes] = asyncio.Queue()
    QUEUES.append(queue)
    await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
    await send({"type": "http.response.body", "body": b"event: snapshot\ndata: {}\n\n", "more_body": True})
    sending = asyncio.create_task(hand_on(queue, send))
    while (await receive())["type"] != "http.disconnect":
        pass
    sending.cancel()
    QUEUES.remove(queue)


async def hand_on(queue: "asyncio.Queue[bytes]", send: Any) -> None:
    while True:
        await send({"type": "http.response.body", "body": await queue.get(), "more_body": True})


async def talk(rate: float, seconds: float) -> int:
    each, said, began = 1 / rate, 0, time.monotonic()
    for round_ in range(round(rate * seconds)):
        for number, queue in enumerate(QUEUES):
            wait = began + round_ * each + number / len(QUEUES) * each - time.monotonic()
            if wait > 0.002:
                await asyncio.sleep(wait)
            at_ms = time.time_ns() // 1_000_000
            data = json.dumps({"text": "x" * 80, "number": round_ + 1, "at_ms": at_ms}).encode()
            queue.put_nowait(b"id: s:%d\nevent: tool_status\ndata: " % (round_ + 1) + data + b"\n\n")
            said += 1
    return said


async def main() -> None:
    server = uvicorn.Server(
        uvicorn.Config(app, port=0, log_config=None, access_log=False, lifespan="off", timeout_graceful_shutdown=1)
    )
    serving = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    port: int = server.servers[0].sockets[0].getsockname()[1]
    streams = [f"s{number}" for number in range(int(sys.argv[1]))]
    print(json.dumps({"port": port, "token": "none", "sessions": streams}), flush=True)
    while line := await asyncio.to_thread(sys.stdin.readline):
        rate, seconds = map(float, line.split())
        print(json.dumps({"said": await talk(rate, seconds), "cpu_s": time.process_time()}), flush=True)
    server.should_exit = True
    await serving


if __name__ == "__main__":
    import uvloop

    uvloop.run(main())

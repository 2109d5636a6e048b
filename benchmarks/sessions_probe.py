"""A server whose sessions talk on command: `-m benchmarks.sessions_probe HOME DATABASE SESSIONS`.

Prints its port, a token and the sessions as JSON. For each line `RATE SECONDS` that it is sent, every session says
RATE things a second for so long, each at a moment of its own, and their number is printed. Events go the way that those
of an agent go: they are recorded, and then shown to whoever follows.
"""

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable

import uvicorn

from rookery.app import Platform, make_platform
from rookery.db.tx import Tx
from rookery.identity.access import AccessStore
from rookery.identity.resolve import Binding
from rookery.identity.store import IdentityStore
from rookery.lifecycle.run_store import NewRun, Runs
from rookery.server.auth import make_authenticator
from rookery.server.http import WebApp
from rookery.server.loop import run, settle_memory
from rookery.server.run import web_config
from rookery.sessions.events import SessionEvent
from rookery.sessions.log import SessionLog
from rookery.sessions.store import NewSession, SessionRows
from rookery.settings import Settings

TENANT = "default"


def prepared(platform: Platform, many: int) -> tuple[str, dict[str, str]]:
    """A token of the owner, and sessions with a run each."""

    def make(tx: Tx) -> tuple[str, dict[str, str]]:
        actor = platform.resolver.resolve(tx, Binding()).actor
        rows, runs = SessionRows(tx, TENANT), Runs(tx, TENANT)
        made: dict[str, str] = {}
        for _ in range(many):
            session = rows.create(NewSession(actor=actor, runtime="scripted", mode="act", opened_by="bench"))
            made[session.id] = runs.start(NewRun(project_id=actor.project or "", kind="session")).id
        owner = IdentityStore(tx, TENANT).owner()
        return AccessStore(tx, TENANT).create_token("bench", owner.id, "person", ["*"], owner.id, None)[1], made

    return platform.database.direct(make, write=True)


async def talk(log: SessionLog, sessions: dict[str, str], rate: float, seconds: float) -> int:
    """Let every session say something so often; how much was said."""
    each, said = 1 / rate, 0
    at = [(number / len(sessions) * each, session, run) for number, (session, run) in enumerate(sessions.items())]
    began = time.monotonic()
    for round_ in range(round(rate * seconds)):
        for offset, session, run_id in at:
            wait = began + round_ * each + offset - time.monotonic()
            if wait > 0.002:
                await asyncio.sleep(wait)
            log.put(TENANT, session, run_id, SessionEvent("tool_status", {"text": "x" * 80}))
            said += 1
    for session in sessions:
        await log.flush(session)
    return said


async def lines(answer: Callable[[str], Awaitable[object]]) -> None:
    """Hand every line of standard input on, until its end."""
    while line := await asyncio.to_thread(sys.stdin.readline):
        print(json.dumps(await answer(line)), flush=True)


async def serve(home: str, database: str, many: int) -> None:
    platform = make_platform(Settings(home=home, database=database, plugins=False, runtime="scripted"))
    token, sessions = prepared(platform, many)
    log: SessionLog = platform.calls.facts["sessions"].log
    web = WebApp(platform, make_authenticator(platform.settings), None)
    config = web_config(web)
    config.port, config.host = 0, "127.0.0.1"
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    settle_memory()
    port: int = server.servers[0].sockets[0].getsockname()[1]
    print(json.dumps({"port": port, "token": token, "sessions": list(sessions)}), flush=True)

    async def answer(line: str) -> object:
        rate, seconds = map(float, line.split())
        return {"said": await talk(log, sessions, rate, seconds), "cpu_s": time.process_time()}

    await lines(answer)
    await web.close()
    server.should_exit = True
    await serving
    await log.close()
    platform.close()


if __name__ == "__main__":
    run(serve(sys.argv[1], sys.argv[2], int(sys.argv[3])))

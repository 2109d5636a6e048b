"""Times pages of the console and prints the samples as JSON: `-m benchmarks.console_probe HOME DATABASE ISSUES CALLS`.

Each page is asked for as a browser asks, of the application itself, without a network between: from the request to the
last byte of the answer, with the audit log on. Its floor are the same statements on a bare connection, every row
fetched.
"""

import asyncio
import contextlib
import json
import re
import sqlite3
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psycopg
import sqlalchemy as sa

from benchmarks import machine
from benchmarks.console_data import fill
from benchmarks.tracker_probe import Statement, statements
from rookery.app import Platform, make_platform
from rookery.db.tx import Tx
from rookery.identity.signing_in import open_session
from rookery.identity.store import DEFAULT_TENANT, IdentityStore
from rookery.server.auth import make_authenticator
from rookery.server.http import WebApp
from rookery.settings import Settings

WARM_UP = 3
PAGES = {
    "board": "/board",
    "board, a label": "/board?label=flaky",
    "board, a text": "/board?text=upload",
    "board, by last change": "/board?sort=updated",
    "the next 50 of a column": "",
    "home": "/",
}
MORE = re.compile(rb'hx-get="([^"]*column=todo[^"]*part=more[^"]*)"')


class Bare:
    """The same database without us."""

    def __init__(self, platform: Platform, home: Path) -> None:
        url = sa.make_url(platform.database.url)
        if url.get_backend_name() == "sqlite":
            self._connection: Any = sqlite3.connect(home / "rookery.db", isolation_level=None)
        else:
            address = url.set(drivername="postgresql").render_as_string(hide_password=False)
            self._connection = psycopg.connect(address)

    def read(self, wanted: Sequence[Statement]) -> None:
        cursor = self._connection.cursor()
        cursor.execute("BEGIN")
        for text, values in wanted:
            cursor.execute(text, values).fetchall()
        cursor.execute("ROLLBACK")

    def close(self) -> None:
        self._connection.close()


class Browser:
    """Somebody signed in who asks the application itself."""

    def __init__(self, platform: Platform) -> None:
        def enter(tx: Tx) -> str:
            return open_session(tx, DEFAULT_TENANT, IdentityStore(tx, DEFAULT_TENANT).owner().id, "bench")

        self.web = WebApp(platform, make_authenticator(platform.settings), None)
        token = platform.database.direct(enter, write=True)
        cookie = f"rookery_{platform.settings.port}={token}".encode()
        self._headers = [(b"host", b"127.0.0.1"), (b"cookie", cookie)]

    async def get(self, address: str) -> bytes:
        path, _, query = address.partition("?")
        part = [(b"hx-request", b"true")] if "part=" in query else []
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": "GET",
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "headers": [*self._headers, *part],
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 80),
        }
        sent: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: Any) -> None:
            sent.append(message)

        await self.web(scope, receive, send)
        if sent[0]["status"] != 200:
            raise RuntimeError(f"{address} answers {sent[0]['status']}")
        return b"".join(message.get("body", b"") for message in sent)


async def timed(browser: Browser, bare: Bare, address: str, calls: int) -> dict[str, Any]:
    """Milliseconds of each call and of its floor, and how much one answer is."""
    with statements() as seen:
        page = await browser.get(address)
    wanted = [each for each in seen if each[0].lstrip().upper().startswith("SELECT")]
    took: list[float] = []
    floor: list[float] = []
    for number in range(WARM_UP + calls):
        started = time.perf_counter_ns()
        await browser.get(address)
        middle = time.perf_counter_ns()
        bare.read(wanted)
        if number >= WARM_UP:
            took.append((middle - started) / 1e6)
            floor.append((time.perf_counter_ns() - middle) / 1e6)
    return {"took": took, "floor": floor, "statements": len(wanted), "bytes": len(page)}


async def measure(platform: Platform, home: Path, calls: int) -> dict[str, Any]:
    browser = Browser(platform)
    with contextlib.closing(Bare(platform, home)) as bare:
        found = MORE.search(await browser.get("/board"))
        assert found is not None, "the column has no more cards"
        more = found[1].decode().replace("&amp;", "&")
        watch = machine.CpuWatch.of(())
        pages = {name: await timed(browser, bare, address or more, calls) for name, address in PAGES.items()}
        strangers = watch.stop()[1]
    await browser.web.close()
    return {"pages": pages, "strangers": strangers}


def main(home: Path, database: str, count: int, calls: int) -> None:
    settings = Settings(home=str(home), database=database, plugins=False)
    with contextlib.closing(make_platform(settings)) as platform:
        platform.database.direct(lambda tx: fill(tx, count), write=True)
        if database:
            # Right after a load PostgreSQL does not know yet what is in its tables.
            with psycopg.connect(database.replace("+psycopg", ""), autocommit=True) as connection:
                connection.execute("ANALYZE")
        print(json.dumps(asyncio.run(measure(platform, home, calls))))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))

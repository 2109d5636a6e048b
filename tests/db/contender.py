"""One of many processes that write to one database: `python -m tests.db.contender URL SECONDS`.

Says `ready`, waits for a line, writes for so long, and prints what it did as JSON.
"""

import asyncio
import json
import os
import sys
import threading
import time

from rookery.around import audit
from rookery.around.chain import seal_pending
from rookery.db.database import Database, open_database
from rookery.db.tx import Tx
from tests.db import sample

IN_FLIGHT = 4
BEAT_S = 0.01


class Heart(threading.Thread):
    """Beats a hundred times a second if the machine lets it; `longest_s` is the longest it was kept from beating."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.longest_s = 0.0
        self.beating = True

    def run(self) -> None:
        last = time.monotonic()
        while self.beating:
            time.sleep(BEAT_S)
            now = time.monotonic()
            self.longest_s, last = max(self.longest_s, now - last - BEAT_S), now


class Contender:
    def __init__(self, database: Database) -> None:
        self._database = database
        self.written = 0
        self.longest_s = 0.0
        self.errors: list[str] = []

    async def write_until(self, end: float, name: str) -> None:
        while time.monotonic() < end and not self.errors:
            key = f"{os.getpid()}-{name}-{self.written}"

            def work(tx: Tx, key: str = key) -> None:
                sample.add(key)(tx)
                sample.count_up(tx)

            began = time.monotonic()
            try:
                await self._database.write(work, records=sample.recorded(key))
            except Exception as error:
                self.errors.append(repr(error))
                return
            self.longest_s = max(self.longest_s, time.monotonic() - began)
            self.written += 1


async def main(url: str, seconds: float) -> None:
    database = open_database(url)
    database.seal = audit.append
    database.tick = seal_pending
    contender, heart = Contender(database), Heart()
    print("ready", flush=True)
    sys.stdin.readline()
    heart.start()
    end = time.monotonic() + seconds
    await asyncio.gather(*(contender.write_until(end, str(at)) for at in range(IN_FLIGHT)))
    heart.beating = False
    database.close()
    told = {"written": contender.written, "longest_s": contender.longest_s, "errors": contender.errors}
    print(json.dumps({**told, "stalled_s": heart.longest_s}))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], float(sys.argv[2])))

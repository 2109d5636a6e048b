"""A server with agents in it that ask; it can be killed at any moment. Run by test_asks_chaos.py, a process each.

What an agent has learned it notes in a journal, as one that writes to disk would: the answer, and every second agent
also the id of its question as soon as it is told. Started again it goes on from there: the others can only ask the same
again. With a number of a question that is deadly, the server dies at its answer, before the agent has heard of it.
"""

import asyncio
import json
import os
import signal
import sys
from typing import Any

from rookery.app import make_platform
from rookery.core.actor import Actor
from rookery.core.context import SilentDoor
from rookery.core.ids import new_id
from rookery.identity.resolve import Binding
from rookery.settings import Settings

LOOK_S = 0.2


class Journal:
    """Lines of JSON that are on disk when they are written."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_CREAT | os.O_APPEND | os.O_RDWR, 0o600)
        self.handles: dict[int, str] = {}
        self.answers: dict[int, str] = {}
        for line in os.read(self._file, 100_000_000).decode().splitlines():
            self._take(json.loads(line))

    def _take(self, entry: dict[str, Any]) -> None:
        (self.handles if entry["what"] == "handle" else self.answers)[entry["number"]] = entry["text"]

    def close(self) -> None:
        os.close(self._file)

    def note(self, what: str, number: int, text: str) -> None:
        entry = {"what": what, "number": number, "text": text}
        os.write(self._file, json.dumps(entry).encode() + b"\n")
        self._take(entry)


class Handle(SilentDoor):
    """Notes the id of a question as soon as it is told."""

    def __init__(self, journal: Journal, number: int) -> None:
        self._journal = journal
        self._number = number

    def tell(self, method: str, params: dict[str, Any]) -> None:
        message = params.get("message") or ""
        if "ask_id: " in message:
            self._journal.note("handle", self._number, message.rpartition("ask_id: ")[2])


async def inquire(
    calls: Any, actor: Actor, number: int, journal: Journal, room: asyncio.Semaphore, deadly: int
) -> None:
    """Ask, or look at what was asked before, until there is an answer."""
    async with room:
        while number not in journal.answers:
            known = journal.handles.get(number)
            if known is None:
                asked = {"question": f"question {number}?", "timeout_seconds": 600}
                door = Handle(journal, number) if number % 2 else SilentDoor()
                told = await calls.call(actor, "ask_owner", asked, door=door)
                if number == deadly:
                    os.kill(os.getpid(), signal.SIGKILL)
            else:
                told = await calls.call(actor, "check_answer", {"ask_id": known})
            if told.structured["status"] == "answered":
                journal.note("answer", number, told.structured["answer"])
            else:
                await asyncio.sleep(LOOK_S)


async def main(url: str, home: str, journal_path: str, count: int, agents: int, at_once: int, deadly: int) -> None:
    platform = make_platform(Settings(home=home, database=url, plugins=False, rate_calls_per_minute=0))
    journal = Journal(journal_path)
    room = asyncio.Semaphore(at_once)
    actors = [
        platform.database.direct(
            lambda tx, name=f"agent{number}": platform.resolver.resolve(tx, Binding(agent=name, session=new_id("ses")))
        ).actor
        for number in range(agents)
    ]
    print("up", flush=True)
    await asyncio.gather(
        *(inquire(platform.calls, actors[number % agents], number, journal, room, deadly) for number in range(count))
    )
    print("done", flush=True)
    platform.close()


if __name__ == "__main__":
    url, home, journal, *numbers = sys.argv[1:]
    asyncio.run(main(url, home, journal, *map(int, numbers)))

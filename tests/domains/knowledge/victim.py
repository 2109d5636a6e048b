"""Processes that are killed while they index a folder: `python -m tests.domains.knowledge.victim URL HOME`.

For each line on standard input a child is forked, which says `pid N`, indexes the folder of the project `docs` and says
of each file what became of it, as `rookery knowledge add` does. When the child is gone, `gone` is said.
"""

import asyncio
import os
import sys
from typing import Any, cast

from rookery.app import make_platform
from rookery.cli.indexing import Librarian, Library
from rookery.identity.resolve import Binding
from rookery.settings import Settings
from tests.domains.knowledge.library import HashEmbedder


class Sayings:
    """A report of lines that are out before the next file is touched."""

    def expect(self, files: int) -> None:
        return None

    def tell(self, status: str, path: str, detail: str) -> None:
        say(f"{status} {path} {detail}")


def say(line: str) -> None:
    os.write(1, f"{line}\n".encode())


def index(settings: Settings) -> None:
    platform = make_platform(settings)
    cast("dict[str, Any]", platform.calls.facts)["embedder"] = HashEmbedder
    owner = Binding(as_owner=True, project="docs")
    actor = platform.database.direct(lambda tx: platform.resolver.resolve(tx, owner)).actor
    with asyncio.Runner() as runner:
        Librarian(Library(platform, actor, runner)).add((), Sayings(), prune=False)
    platform.close()


def main(url: str, home: str) -> None:
    settings = Settings(home=home, database=url, plugins=False)
    for _ in sys.stdin:
        child = os.fork()
        if child == 0:
            say(f"pid {os.getpid()}")
            index(settings)
            os._exit(0)
        os.waitpid(child, 0)
        say("gone")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])

"""Times what remembers and prints the samples as JSON: `-m benchmarks.remember_probe PART HOME NUMBER…`.

`recall HOME ROUNDS CALLS MEMORIES AGENTS`: memories, plain in one home and sealed in another, called in turn.
`search HOME ROUNDS CALLS CHUNKS`: documents, with an embedder and without, on one home.
`index HOME FILES EMBED`: Markdown files read in one after the other, with an embedder if EMBED is 1.
Calls go one at a time through the call path that every door ends in, with the audit log on.
"""

import asyncio
import contextlib
import json
import random
import statistics
import struct
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

from benchmarks import machine
from benchmarks.remember_data import Keepers, Prose, Shelf, Zipf, fill_chunks, fill_memories, write_files
from benchmarks.tracker_probe import WARM_UP, Arguments, Bare, Case, Statement, statements
from rookery.app import Platform, make_platform
from rookery.core.actor import Actor
from rookery.domains.knowledge.chunks import cut
from rookery.domains.knowledge.search import CANDIDATES
from rookery.domains.knowledge.tables import chunks
from rookery.embedding.embedder import Embedder, load_embedder, missing
from rookery.embedding.epochs import touch
from rookery.identity.binding import Binding
from rookery.sealing.key_table import current_version
from rookery.sealing.keyring import Keyring
from rookery.settings import Settings

WORDS = "legal winner thank year wave sausage worth useful legal winner thank yellow"
"""Twelve words of BIP-39 with a right checksum, known to everybody."""
DIMS = 384
QUERIES = 40
EMBED_EVERY = 10
"""Of every so many-th file the embedding alone is timed as well."""


class Site:
    """One home and the calls that are timed on it."""

    def __init__(self, home: Path, bare: Bare | None = None, mnemonic: str = "") -> None:
        self.home = home
        self.platform: Platform = make_platform(Settings(home=str(home), plugins=False, mnemonic=mnemonic))
        self.bare = bare or Bare(home)
        self.cases: list[Case] = []

    def actor(self, **binding: Any) -> Actor:
        bound = Binding(**binding)
        return self.platform.database.direct(lambda tx: self.platform.resolver.resolve(tx, bound)).actor

    def use(self, embedder: Embedder | None) -> None:
        facts = cast("dict[str, Any]", self.platform.calls.facts)
        facts["embedder"] = lambda: embedder

    async def call(self, actor: Actor, tool: str, arguments: Arguments) -> dict[str, Any]:
        return (await self.platform.calls.call(actor, tool, arguments)).structured

    async def read(
        self,
        name: str,
        actor: Actor,
        tool: str,
        variants: Sequence[Arguments],
        besides: Callable[[Arguments], None] | None = None,
    ) -> None:
        """A case of a read. Its floor are the statements of each variant, and what has to be done `besides`."""
        recorded: list[list[Statement]] = []
        for arguments in variants:
            with statements() as seen:
                await self.call(actor, tool, arguments)
            # Recalls are counted by a thread, whenever it is time: no part of any one call.
            recorded.append([each for each in seen if each[0].startswith("SELECT")])

        def floor(number: int) -> None:
            self.bare.read(recorded[number % len(recorded)])
            if besides is not None:
                besides(variants[number % len(variants)])

        step = lambda number: self.call(actor, tool, variants[number % len(variants)])  # noqa: E731
        self.cases.append(Case(name, step, floor if any(recorded) else None))

    def found(self) -> dict[str, Any]:
        return {case.name: case.found() for case in self.cases}

    def close(self) -> None:
        self.bare.close()
        self.platform.close()


async def in_turn(sites: Sequence[Site], rounds: int, calls: int) -> float:
    """Every case of every site once a round, the sites in another order each time. Says what share others took."""
    for site in sites:
        for case in site.cases:
            await case.round(WARM_UP, counts=False)
    watch = machine.CpuWatch.of(())
    for number in range(rounds):
        turn = number % len(sites)
        for at in range(len(sites[0].cases)):
            for site in (*sites[turn:], *sites[:turn]):
                await site.cases[at].round(calls)
    return watch.stop()[1]


def recall(home: Path, rounds: int, calls: int, count: int, agents: int) -> dict[str, Any]:
    zipf = Zipf()

    def fill(site: Site, whose: Keepers) -> float:
        started = time.monotonic()
        fill_memories(site.home, zipf, whose, count)
        return time.monotonic() - started

    with contextlib.ExitStack() as stack:
        sites = {kind: Site(home / kind, mnemonic=words) for kind, words in (("plain", ""), ("sealed", WORDS))}
        for site in sites.values():
            stack.callback(site.close)
        # While SQLite works for one of them, the other's rows are made.
        with ThreadPoolExecutor(len(sites)) as threads:
            took = threads.map(fill, sites.values(), [keepers(site, agents) for site in sites.values()])
            filled = dict(zip(sites, took, strict=True))
        for site in sites.values():
            asyncio.run(prepare_recall(site, zipf, count, agents))
        strangers = asyncio.run(in_turn(list(sites.values()), rounds, calls))
        found = {kind: site.found() for kind, site in sites.items()}
        sizes = {kind: (site.home / "rookery.db").stat().st_size for kind, site in sites.items()}
    return {"cases": found, "filled_s": filled, "bytes": sizes, "strangers": strangers}


def keepers(site: Site, agents: int) -> Keepers:
    keyring = cast("Keyring | None", site.platform.calls.facts["keyring"])
    if keyring is None:
        return Keepers(site.actor(), agents)
    version = site.platform.database.direct(lambda tx: current_version(tx, keyring), write=True)
    return Keepers(site.actor(), agents, keyring, version)


async def prepare_recall(site: Site, zipf: Zipf, count: int, agents: int) -> None:
    chance, actor = random.Random(8), site.actor()
    mine = [{"key": f"note {agents * chance.randrange(count // agents)}"} for _ in range(QUERIES)]
    known = await site.call(actor, "recall_memory", mine[0])
    if not known["memories"]:
        raise SystemExit("what was filled in cannot be recalled")
    await site.read("by key", actor, "recall_memory", mine)
    await site.read("newest", actor, "recall_memory", [{}])
    for words, name in ((1, "one word"), (2, "two words"), (3, "three words")):
        queries = [{"query": query} for query in zipf.queries(words, QUERIES)]
        await site.read(name, actor, "recall_memory", queries)

    async def save(number: int) -> None:
        await site.call(actor, "save_memory", {"key": f"new {number}", "content": zipf.text(chance)})

    site.cases.append(Case("save_memory", save, lambda number: site.bare.commits(1)))
    await site.read("ping", actor, "ping", [{}])


class MadeUp:
    """Vectors without a model: for each text a direction that only chance chose."""

    name = "made-up"
    dims = DIMS

    def embed(self, texts: Sequence[str]) -> list[bytes]:
        return [self._one(random.Random(text)) for text in texts]

    def _one(self, chance: random.Random) -> bytes:
        numbers = [chance.gauss() for _ in range(DIMS)]
        length = sum(number * number for number in numbers) ** 0.5
        return struct.pack(f"<{DIMS}e", *(number / length for number in numbers))


def search(home: Path, rounds: int, calls: int, count: int) -> dict[str, Any]:
    if "numpy" in missing():
        return {"skipped": "a search among vectors needs numpy"}
    embedder = load_embedder() or MadeUp()
    prose = Prose(Zipf())
    with contextlib.ExitStack() as stack:
        hybrid = Site(home)
        keyword = Site(home, hybrid.bare)
        for site, used in ((hybrid, embedder), (keyword, None)):
            stack.callback(site.close)
            site.use(used)
        alone = Alone(embedder, count)
        filled = asyncio.run(fill_shelf(hybrid, alone, prose, count))
        for kind, queries in prose.queries(QUERIES).items():
            variants = [{"query": query, "min_score": 0} for query in queries]
            for site, more in ((hybrid, alone), (keyword, None)):
                asyncio.run(site.read(kind, worker(site), "search_knowledge", variants, more))
        strangers = asyncio.run(in_turn([hybrid, keyword], rounds, calls))
        found = {"hybrid": hybrid.found(), "keyword": keyword.found()}
    about = {"embedder": embedder.name, "bytes": (home / "rookery.db").stat().st_size, "strangers": strangers}
    return {"cases": found, "alone_ms": alone.found(), "peak_kb": peak_kb(), **filled, **about}


def worker(site: Site) -> Actor:
    return site.actor(profile="worker")


class Alone:
    """What a search by meaning does besides its statements: the query's vector, and one product with all others."""

    def __init__(self, embedder: Embedder, count: int) -> None:
        import numpy as np

        self._np = np
        self.embedder = embedder
        self.directions = np.random.default_rng(2).standard_normal((count, embedder.dims), dtype=np.float32)
        self.directions /= np.linalg.norm(self.directions, axis=1, keepdims=True)
        self.embedding: list[float] = []
        self.product: list[float] = []

    def stored(self) -> Iterator[bytes]:
        """The vectors as rows have them."""
        return (row.astype("<f2").tobytes() for row in self.directions)

    def __call__(self, arguments: Arguments) -> None:
        started = time.perf_counter_ns()
        vector = self.embedder.embed([arguments["query"]])[0]
        between = time.perf_counter_ns()
        query = self._np.frombuffer(vector, dtype="<f2").astype(self._np.float32)
        self._np.argpartition(self.directions @ query, -CANDIDATES)
        self.embedding.append((between - started) / 1e6)
        self.product.append((time.perf_counter_ns() - between) / 1e6)

    def found(self) -> dict[str, float]:
        return {"embedding": statistics.median(self.embedding), "product": statistics.median(self.product)}


async def fill_shelf(site: Site, alone: Alone, prose: Prose, count: int) -> dict[str, float]:
    """Fill it, and look whether it can be searched. How long that took, and the first search."""
    await site.call(site.actor(as_owner=True), "configure_vault", {"on": True})
    shelf = Shelf(worker(site), alone.embedder.name)
    started = time.monotonic()
    fill_chunks(site.home, prose, shelf, count, alone.stored())
    site.platform.database.direct(lambda tx: touch(tx, chunks.name, shelf.place[1]), write=True)
    filled_s = time.monotonic() - started
    alone.embedder.embed(["the first text of all takes longer"])
    started = time.monotonic()
    answer = await site.call(shelf.actor, "search_knowledge", {"query": "how is a module imported", "min_score": 0})
    first_s = time.monotonic() - started
    if answer["method"] != "hybrid" or not answer["results"]:
        raise SystemExit(f"the search found nothing, or not by both: {answer['method']}")
    return {"filled_s": filled_s, "first_s": first_s}


def index(home: Path, count: int, embed: int) -> dict[str, Any]:
    if embed and missing():
        return {"skipped": f"files with their vectors need {', '.join(missing())}"}
    folder = home / "files"
    folder.mkdir(parents=True)
    paths = write_files(folder, Prose(Zipf()), count)
    site = Site(home / "home")
    with contextlib.closing(site):
        before_kb = peak_kb()
        site.use(embedder := load_embedder() if embed else None)
        loaded_kb = peak_kb()
        watch = machine.CpuWatch.of(())
        used = time.process_time()
        done = asyncio.run(read_in(site, folder, paths, embedder))
        used, strangers = time.process_time() - used, watch.stop()[1]
    memory = {"before_kb": before_kb, "loaded_kb": loaded_kb, "peak_kb": peak_kb()}
    name = None if embedder is None else embedder.name
    return {**done, **memory, "cpu_s": used, "strangers": strangers, "embedder": name}


async def read_in(site: Site, folder: Path, paths: Sequence[str], embedder: Embedder | None) -> dict[str, Any]:
    """Each file by a call of its own, as `rookery knowledge add` does. The floor of some in the same moments."""
    owner = site.actor(as_owner=True)
    await site.call(owner, "configure_vault", {"on": True, "root": str(folder)})
    took: list[float] = []
    floors: list[tuple[float, float]] = []
    pieces = 0
    for number, path in enumerate(paths):
        started = time.perf_counter_ns()
        done = await site.call(owner, "vault_update", {"path": path})
        took.append((time.perf_counter_ns() - started) / 1e6)
        pieces += done["chunks"]
        if done["status"] != "indexed" or (done["embedder"] is None) != (embedder is None):
            raise SystemExit(f"{path} is {done['status']} with {done['embedder']}")
        if embedder is None or number % EMBED_EVERY == 0:
            floors.append((took[-1], floor_ms(site, folder / path, embedder)))
    return {"took": took, "floors": floors, "chunks": pieces}


def floor_ms(site: Site, file: Path, embedder: Embedder | None) -> float:
    """What cannot be saved: the vectors, or without any, one commit."""
    texts = [f"{chunk.heading}\n{chunk.content}".strip() for chunk in cut(file.read_text(), "markdown")]
    started = time.perf_counter_ns()
    if embedder is None:
        site.bare.commits(1)
    else:
        embedder.embed(texts)
    return (time.perf_counter_ns() - started) / 1e6


def peak_kb() -> int:
    """The most memory that this process ever had."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1])


PARTS: dict[str, Callable[..., dict[str, Any]]] = {"recall": recall, "search": search, "index": index}


def main(part: str, home: Path, numbers: Sequence[int]) -> None:
    print(json.dumps(PARTS[part](home, *numbers)))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), [int(number) for number in sys.argv[3:]])

"""Brings the index of a project up to date: finds what has changed, has it read, and keeps it, some files at a time.

Files are read by processes and rows are written in short transactions, so neither the event loop nor other writers
wait. What was written stays when the rest is given up: the next call goes on from there.
"""

import asyncio
import itertools
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rookery.core.context import Context
from rookery.core.errors import RookeryError, ServiceUnavailable
from rookery.domains.code.reading import Answer, unreadable
from rookery.domains.code.store import AT_ONCE, Indexes, Known, parts
from rookery.domains.code.trees import Trees, Watched, trees_of
from rookery.domains.code.walk import look_at
from rookery.domains.code.workers import Worker, WorkerLost

MIN_CHUNK, MAX_CHUNK = 64 * 1024, 512 * 1024
"""Bytes that a process is handed at once. They become one segment of the index."""
MAX_WORKERS = 8
Found = Mapping[str, tuple[int, int]]
Chunk = list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Project:
    """A project whose folder there is, by its real path."""

    id: str
    slug: str
    root: str


async def refresh(ctx: Context, project: Project) -> Watched:
    """See to it that the index has the project's files as they are now. Costs next to nothing if nothing changed."""
    trees = trees_of(ctx.platform)
    watched = trees.of(project.id, project.root)
    async with watched.lock:
        paths = watched.changed()
        if paths is None or paths:
            watched.stale = True
            await _Refresh(ctx, project, trees, watched).run(paths)
            watched.stale = False
    return watched


class _Refresh:
    def __init__(self, ctx: Context, project: Project, trees: Trees, watched: Watched) -> None:
        self.ctx = ctx
        self.project = project
        self.trees = trees
        self.watched = watched
        self.tenant = ctx.actor.tenant
        self.no = 0
        self.done = self.total = self.readers = 0

    async def run(self, paths: set[str] | None) -> None:
        ctx, project = self.ctx, self.project
        index = await ctx.read(lambda tx: Indexes(tx, self.tenant).find(project.id, project.root))
        while index is None:
            index = await ctx.write(lambda tx: Indexes(tx, self.tenant).open(project.id, project.root))
        self.no = index.no
        if not index.complete:
            # They start while the tree is walked.
            await asyncio.to_thread(self.trees.workers.warm, _readers())
        found, known = await self._compare(sorted(paths) if paths is not None and index.complete else None)
        gone = sorted(known.keys() - found.keys())
        for part in parts(gone):
            await ctx.write(lambda tx, part=part: Indexes(tx, self.tenant).remove(self.no, part))
        # What the kernel told of is read whatever its time of change says.
        told = paths or set()
        suspect = sorted(path for path, seen in found.items() if path in told or _differs(known.get(path), seen))
        if paths is None and index.complete:
            suspect = await self._with_sparse(suspect, found, known)
        if suspect:
            await self._take(suspect, found, known)
        if not index.complete:
            await ctx.write(lambda tx: Indexes(tx, self.tenant).finish(self.no))

    async def _with_sparse(self, suspect: Sequence[str], found: Found, known: dict[str, Known]) -> list[str]:
        """With those files that are read again for the sake of the index, whatever their hash: every change leaves a
        segment behind, and each costs a search some time."""
        sparse = await self.ctx.read(lambda tx: Indexes(tx, self.tenant).sparse(self.no, MIN_CHUNK))
        again = set(sparse) & found.keys()
        for path in again:
            known.pop(path, None)
        return sorted(again.union(suspect))

    async def _compare(self, paths: Sequence[str] | None) -> tuple[Found, dict[str, Known]]:
        """The files there are and the files that are known: all of them, or those at some paths."""
        if paths is None:
            tree = await asyncio.to_thread(self.watched.walk, self.ctx.check)
            return tree.files, await self.ctx.read(lambda tx: Indexes(tx, self.tenant).known(self.no))
        there = await asyncio.to_thread(look_at, self.project.root, paths, self.watched.rules)
        return there, await self.ctx.read(lambda tx: Indexes(tx, self.tenant).known(self.no, paths))

    async def _take(self, suspect: Sequence[str], found: Found, known: Mapping[str, Known]) -> None:
        """Have files read, by as many processes as there are cores, and keep what they say."""
        self.total = len(suspect)
        count = min(self.total, _readers())
        chunks = iter(_chunks(suspect, found, known, count))
        ready: asyncio.Queue[Answer | None] = asyncio.Queue(maxsize=2 * MAX_WORKERS)
        try:
            async with asyncio.TaskGroup() as group:
                for chunk in itertools.islice(chunks, count):
                    group.create_task(self._read(itertools.chain([chunk], chunks), found, ready))
                    self.readers += 1
                await self._keep(ready)
        except BaseExceptionGroup as failures:
            raise _reason(failures) from failures

    async def _read(self, chunks: Iterator[Chunk], found: Found, ready: "asyncio.Queue[Answer | None]") -> None:
        worker = await self.trees.workers.begun(self.trees.workers.take)
        try:
            for chunk in chunks:
                self.ctx.check()
                try:
                    await ready.put(await asyncio.to_thread(worker.read, self.project.root, chunk))
                except WorkerLost:
                    worker = await self._proven()
                    for one in chunk:
                        worker, answer = await self._alone(worker, one, found)
                        await ready.put(answer)
        except BaseException:
            # It may be in the middle of an answer that nobody waits for.
            worker.end()
            raise
        self.trees.workers.give_back(worker)
        await ready.put(None)

    async def _alone(self, worker: Worker, one: tuple[str, str], found: Found) -> tuple[Worker, Answer]:
        """Read one file of a chunk that cost a process. If it costs another, it is left alone from then on, unless
        processes cannot run at all."""
        try:
            return worker, await asyncio.to_thread(worker.read, self.project.root, [one])
        except WorkerLost:
            worker = await self._proven()
            self.ctx.log("warning", f"{one[0]} cannot be parsed")
            return worker, unreadable(one[0], *found[one[0]])

    async def _proven(self) -> Worker:
        workers = self.trees.workers
        return await workers.begun(lambda: workers.proven(self.project.root))

    async def _keep(self, ready: "asyncio.Queue[Answer | None]") -> None:
        """Write what was read, as much at once as has come meanwhile."""
        while self.readers:
            waiting = [await ready.get()]
            while not ready.empty() and len(waiting) < MAX_WORKERS:
                waiting.append(ready.get_nowait())
            answers = [each for each in waiting if each is not None]
            self.readers -= len(waiting) - len(answers)
            if answers:
                await self.ctx.write(lambda tx, answers=answers: Indexes(tx, self.tenant).save(self.no, answers))
                self.done += sum(len(same) + len(packed[0]) for same, packed in answers)
                self.ctx.progress(self.done, self.total, "files indexed")


def _reason(failures: BaseExceptionGroup[BaseException]) -> BaseException:
    """What the caller is told when several things failed at once: the first that can be told."""
    told = [each for each in failures.exceptions if isinstance(each, RookeryError)]
    if told:
        return told[0]
    first = failures.exceptions[0]
    if isinstance(first, OSError):
        return ServiceUnavailable(f"no process that parses code can be started: {first.strerror}", hint="try again")
    return first


def _readers() -> int:
    """How many processes read at once: one for each core that we may use."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores, MAX_WORKERS)


def _differs(known: Known | None, seen: tuple[int, int]) -> bool:
    return known is None or (known.mtime_ns, known.size) != seen


def _chunks(paths: Sequence[str], found: Found, known: Mapping[str, Known], readers: int) -> Iterator[Chunk]:
    """Paths in their order, in portions that get smaller towards the end, so that all readers end at once."""
    left = sum(found[path][1] for path in paths)
    chunk: Chunk = []
    taken = 0
    for path in paths:
        chunk.append((path, known[path].hash if path in known else ""))
        taken += found[path][1]
        if len(chunk) == AT_ONCE or taken >= min(MAX_CHUNK, max(MIN_CHUNK, left // (4 * readers))):
            yield chunk
            left -= taken
            chunk, taken = [], 0
    if chunk:
        yield chunk

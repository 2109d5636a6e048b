"""Which files are examined next, and for what. Pure.

A pair is a file and a concept. It is due while nobody has recorded it, and again when the file has another content
than the one that was examined. What was found to have issues is left alone until its ticket is finished. A pair that
scanners were given and did not record comes after all others, in smaller company each time, and is given up after the
retries: a file that no scanner gets through ends alone, and holds up none of the others for good.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rookery.engine.retrying import MAX_LOST
from rookery.files.git_trees import TreeFile

MOST_FILES = 100
CHECKED_AT_ONCE = 200
Pair = tuple[str, str]
"""A path and a concept."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What was recorded of a pair. `settled`: it had no issue, or the ticket of its issue is finished."""

    content: str | None
    settled: bool
    updated_ms: int


@dataclass(frozen=True, slots=True)
class Given:
    """A batch that a scanner was given before, and how that ended."""

    made_ms: int
    outcome: str
    payload: Mapping[str, Any]


Key = tuple[str, str, str]
"""A path, a concept and a content."""


@dataclass(frozen=True, slots=True)
class Tried:
    """When scanners were given a file with a content, and when the worker was lost over it."""

    ended: Mapping[Key, Sequence[int]] = field(default_factory=dict[Key, Sequence[int]])
    lost: Mapping[Key, Sequence[int]] = field(default_factory=dict[Key, Sequence[int]])


@dataclass(frozen=True, slots=True)
class Due:
    """A pair that is to be examined. `tries` is how often that was tried in vain."""

    file: TreeFile
    concept: str
    tries: int


@dataclass(frozen=True, slots=True)
class Batch:
    """What one scanner is given: one concept and some files."""

    concept: str
    files: Sequence[TreeFile]


def tried_of(batches: Iterable[Given]) -> Tried:
    """What scanners were given before. What was cancelled counts for nothing."""
    ended: dict[Key, list[int]] = {}
    lost: dict[Key, list[int]] = {}
    for batch in batches:
        if batch.outcome == "cancelled":
            continue
        kept = lost if batch.outcome == "lost" else ended
        for file in batch.payload["files"]:
            kept.setdefault((file["path"], batch.payload["concept"], file["content"]), []).append(batch.made_ms)
    return Tried(ended, lost)


def due_pairs(
    files: Sequence[TreeFile], concepts: Sequence[str], seen: Mapping[Pair, Seen], tried: Tried, max_retries: int
) -> list[Due]:
    """What is to be examined: first what was tried least, then what nobody examined, then what has changed since.

    Of what has changed the oldest record comes first.
    """
    found: list[tuple[tuple[int, bool, int, int, str], Due]] = []
    for place, concept in enumerate(concepts):
        for file in files:
            known = seen.get((file.path, concept))
            if known is not None and (known.content == file.blob or not known.settled):
                continue
            age = 0 if known is None else known.updated_ms
            # What was given before the last record has led to it, if the file has its old content again.
            key = (file.path, concept, file.blob)
            tries, losses = (sum(at > age for at in given.get(key, ())) for given in (tried.ended, tried.lost))
            if tries > max_retries or losses > MAX_LOST:
                continue
            found.append(((tries, known is not None, age, place, file.path), Due(file, concept, tries)))
    found.sort(key=lambda each: each[0])
    return [due for _, due in found]


def first_batch(due: Sequence[Due], size: int, texts: Callable[[Sequence[TreeFile]], Collection[str]]) -> Batch | None:
    """The first pairs that go together, as many as `size`; None if nothing is due.

    `texts` says which of some files have text in them, by path; the others are passed over.
    """
    head = next(_with_text(due, texts), None)
    if head is None:
        return None
    room = max(min(size, MOST_FILES) >> head.tries, 1)
    alike = [each for each in due if (each.concept, each.tries) == (head.concept, head.tries)]
    files: list[TreeFile] = []
    for each in _with_text(alike, texts):
        files.append(each.file)
        if len(files) == room:
            break
    return Batch(head.concept, files)


def _with_text(due: Sequence[Due], texts: Callable[[Sequence[TreeFile]], Collection[str]]) -> Iterator[Due]:
    for start in range(0, len(due), CHECKED_AT_ONCE):
        part = due[start : start + CHECKED_AT_ONCE]
        named = texts([each.file for each in part])
        yield from (each for each in part if each.file.path in named)

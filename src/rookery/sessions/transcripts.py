"""Transcripts of Claude Code, listed and read. They are other people's files: nothing here writes, and a file that is
broken, hostile or being written never fails the listing."""

import json
import os
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock
from typing import Any, cast

from rookery.core.errors import NotFound, ValidationFailed
from rookery.sessions.transcript_files import (
    TranscriptFile,
    find_files,
    object_in,
    projects_folder,
    read_head,
    read_lines,
    read_tail,
)
from rookery.sessions.transcript_parser import (
    COMMANDS,
    CONTINUED,
    INTERRUPTED,
    NOTIFICATION,
    OUTPUTS,
    SHELL,
    Conversation,
    Json,
    Message,
    blocks_of,
    model_of,
    moment_of,
    text_in,
    without_reminders,
)

HEAD, TAIL = 8 << 10, 64 << 10
ROOM = 8 << 20
MAX_TITLE = 80
SHORT_ID = 8
MOST_CACHED = 2000
MOST_COUNTED = 10**12
MAX_PATH = 4096
LONGEST_ESCAPE = 12
"""A pair of surrogates, each written as \\uXXXX."""
_TOKENS = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
_NOT_TYPED = (*COMMANDS, *OUTPUTS, SHELL, NOTIFICATION, CONTINUED, INTERRUPTED)


@dataclass(frozen=True, slots=True)
class Transcript:
    """What is known of a transcript without reading it. `mode` is what Claude Code calls the permission mode.

    How many tokens were in its context at last is known of a single one, not in a list.
    """

    id: str
    title: str
    project: str
    cwd: str | None
    model: str | None
    mode: str | None
    started_ms: int | None
    updated_ms: int
    size: int
    etag: str
    context_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class TranscriptPart:
    """A part of a conversation, from one offset to the next; `more` if the file goes on.

    `late_results` are results of calls in the part before. `unread` counts lines that could not be read.
    """

    transcript: Transcript
    messages: Sequence[Message]
    late_results: Sequence[Json]
    tasks: Sequence[dict[str, str]]
    offset: int
    next_offset: int
    more: bool
    unread: int


class Transcripts:
    """The transcripts below one folder. May be used from several threads."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or projects_folder(os.environ)
        self._known: OrderedDict[tuple[str, str], Transcript] = OrderedDict()
        self._lock = Lock()

    def page(self, limit: int, *, cwd: str | None = None, offset: int = 0) -> Sequence[Transcript]:
        """Transcripts, or those of sessions in `cwd`, those written last first."""
        found = (self._seen(file) for file in find_files(self.folder, cwd)[offset:])
        return [each for each, _ in zip((known for known in found if known is not None), range(limit), strict=False)]

    def of(self, transcript_id: str) -> Transcript:
        """One transcript, as it stands at its end; NotFound if there is none."""
        file = self._file(transcript_id)
        try:
            return self._at_its_end(file)
        except OSError as error:
            raise _gone(transcript_id) from error

    def read(self, transcript_id: str, offset: int = 0, room: int = ROOM) -> TranscriptPart:
        """What is said from `offset` on, in about `room` bytes of the file; whoever goes on gives `next_offset`."""
        file = self._file(transcript_id)
        if not 0 <= offset <= file.size:
            raise ValidationFailed(f"the transcript has {file.size} bytes", hint="begin again at 0")
        try:
            found, known = read_lines(self.folder, file, offset, room), self._at_its_end(file)
        except OSError as error:
            raise _gone(transcript_id) from error
        said = Conversation(found.lines)
        return TranscriptPart(
            known,
            said.messages,
            said.late_results,
            said.tasks.listed,
            offset,
            found.next_offset,
            offset < found.next_offset < file.size,
            found.unread,
        )

    def read_last(self, transcript_id: str, room: int = ROOM) -> TranscriptPart:
        """What is said in the last `room` bytes of the file."""
        return self.read(transcript_id, max(0, self._file(transcript_id).size - room), room)

    def _file(self, transcript_id: str) -> TranscriptFile:
        """The file of this id, or of the only id that begins so; of several with one id the newest."""
        files = find_files(self.folder)
        same = [file for file in files if file.id == transcript_id]
        if not same and len(transcript_id) >= SHORT_ID:
            same = [file for file in files if file.id.startswith(transcript_id)]
            same = same if len({file.id for file in same}) == 1 else []
        if not same:
            raise _gone(transcript_id)
        return same[0]

    def _seen(self, file: TranscriptFile) -> Transcript | None:
        """What its head tells; read again only after a change."""
        with self._lock:
            known = self._known.get(file.parts)
            if known is not None and known.etag == file.etag:
                self._known.move_to_end(file.parts)
                return known
        try:
            known = head_of(file, read_head(self.folder, file, HEAD))
        except OSError:
            return None
        with self._lock:
            self._known[file.parts] = known
            while len(self._known) > MOST_CACHED:
                self._known.popitem(last=False)
        return known

    def _at_its_end(self, file: TranscriptFile) -> Transcript:
        known = self._seen(file)
        if known is None:
            raise OSError(f"{file.id} cannot be read")
        return at_last(known, read_tail(self.folder, file, TAIL))


def _gone(transcript_id: str) -> NotFound:
    return NotFound(f"there is no transcript {transcript_id[:100]}", hint="rookery transcripts lists them")


def head_of(file: TranscriptFile, head: bytes) -> Transcript:
    """What the beginning of a file tells of it."""
    title = ""
    found: dict[str, Any] = {"cwd": None, "model": None, "mode": None, "started_ms": None}
    for line in _head_lines(head):
        message = _message(line)
        told = {
            "cwd": text_in(line.get("cwd"))[:MAX_PATH] or None,
            "model": model_of(message) if line.get("type") == "assistant" else None,
            "mode": text_in(line.get("permissionMode"))[:MAX_TITLE] or None,
            "started_ms": moment_of(line),
        }
        found = {name: value if value is not None else told[name] for name, value in found.items()}
        title = title or (typed(line, message) if line.get("type") == "user" else "")
    return Transcript(
        id=file.id,
        title=(title if len(title) <= MAX_TITLE else f"{title[: MAX_TITLE - 1]}…") or f"Session {file.id[:SHORT_ID]}",
        project=file.project,
        updated_ms=file.mtime_ns // 1_000_000,
        size=file.size,
        etag=file.etag,
        **found,
    )


def at_last(known: Transcript, tail: bytes) -> Transcript:
    """The same with what the end of the file tells: the latest model and mode, and how full the context was."""
    model, mode, context = known.model, known.mode, known.context_tokens
    for line in _objects(tail.split(b"\n")):
        message = _message(line)
        mode = text_in(line.get("permissionMode"))[:MAX_TITLE] or mode
        if line.get("type") == "assistant" and line.get("isSidechain") is not True and model_of(message) is not None:
            model = model_of(message)
            context = tokens_in(message.get("usage"), context)
    return replace(known, model=model, mode=mode, context_tokens=context)


def tokens_in(usage: Any, otherwise: int | None) -> int | None:
    """How many tokens the model has read for an answer: new ones, and those of the cache."""
    if not isinstance(usage, dict):
        return otherwise
    counts = [cast("dict[str, Any]", usage).get(name) for name in _TOKENS]
    return min(sum(count for count in counts if type(count) is int and count > 0), MOST_COUNTED)


def typed(line: Json, message: Json) -> str:
    """What a person has typed first in this line, in one line; empty if nothing was."""
    if line.get("isMeta") is True or line.get("isCompactSummary") is True or line.get("isSidechain") is True:
        return ""
    for block in blocks_of(message):
        text = without_reminders(text_in(block.get("text"))) if block.get("type") == "text" else ""
        if text and not text.startswith(_NOT_TYPED):
            return " ".join(text[:HEAD].split())
    return ""


def _head_lines(head: bytes) -> Iterator[Json]:
    """The objects of a head. If the first message is so long that it is cut, its beginning is enough."""
    *whole, last = head.split(b"\n")
    yield from _objects(whole)
    found = object_in(last)
    if found is not None:
        yield found
    elif b'"type":"user"' in last or b'"role":"user"' in last:
        text = last.decode(errors="ignore")
        for key in ('"content":"', '"text":"'):
            if key in text:
                yield {"type": "user", "message": {"content": _beginning(text.partition(key)[2])}}


def _beginning(text: str) -> str:
    """A JSON text that may have no end, as far as it goes."""
    with suppress(ValueError):
        return json.JSONDecoder().raw_decode(f'"{text}')[0]
    for end in range(len(text), max(0, len(text) - LONGEST_ESCAPE), -1):
        with suppress(ValueError):
            return json.loads(f'"{text[:end]}"').encode(errors="replace").decode()
    return ""


def _objects(lines: Sequence[bytes]) -> Iterator[Json]:
    return (found for line in lines if (found := object_in(line)) is not None)


def _message(line: Json) -> Json:
    message = line.get("message")
    return cast(Json, message) if isinstance(message, dict) else {}

"""Reads source files of a tree and takes them apart. Nothing is followed out of it, whoever moves links meanwhile."""

import hashlib
import os
import stat
from collections.abc import Iterable
from typing import Any

from rookery.domains.code.extract import IMPORT, Row, extract, outline_of
from rookery.domains.code.grammars import Grammar, language_of, load
from rookery.domains.code.segment import Packed, Segment

MAX_BYTES = 1024 * 1024
"""What grew beyond this since it was found is not read."""
UNREAD = "unread"
"""The language of a file that is no text, or that no parser survives."""
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_WIDE = (b"\xff\xfe", b"\xfe\xff")
Same = tuple[str, int, int]
"""The path, time of change and size of a file whose bytes are known already."""
Answer = tuple[list[Same], Packed]


class Reader:
    """Reads files of one tree, for one thread. Keeps the folder of the last one open."""

    def __init__(self, root: str) -> None:
        self.root = root
        self._folder = ""
        self._open = -1
        self._grammars: dict[str, Grammar] = {}

    def read(self, wanted: Iterable[tuple[str, str]]) -> Answer:
        """What files say, except for those whose hash is still the given one. What is gone is left out."""
        same: list[Same] = []
        segment = Segment()
        for path, known in wanted:
            try:
                found, content = self._content(path)
            except OSError:
                continue
            if not stat.S_ISREG(found.st_mode) or len(content) > MAX_BYTES:
                continue
            digest = hashlib.blake2b(content, digest_size=16).hexdigest()
            if digest == known:
                same.append((path, found.st_mtime_ns, found.st_size))
                continue
            source = _plain(content)
            language, symbols = self._taken(path, source, segment)
            about = _about(path, found.st_mtime_ns, found.st_size, digest, language, symbols)
            segment.add(about, symbols, source.count(b"\n") + 1)
        self.close()
        return same, segment.packed()

    def _taken(self, path: str, source: bytes, segment: Segment) -> tuple[str, list[Row]]:
        language = language_of(path, source)
        if language is None or b"\0" in source[:8192]:
            return UNREAD, []
        if not source:
            return language.name, []
        grammar = self._grammars.get(language.name)
        if grammar is None:
            grammar = self._grammars[language.name] = load(language)
        return language.name, extract(source, grammar, segment.mentions, segment.before)

    def _content(self, path: str) -> tuple[os.stat_result, bytes]:
        folder, _, name = path.rpartition("/")
        if folder != self._folder or self._open < 0:
            self._go(folder)
        file = os.open(name, _FILE, dir_fd=self._open)
        try:
            # Before the bytes: a change in between makes the file a changed one.
            found = os.fstat(file)
            if not stat.S_ISREG(found.st_mode):
                return found, b""
            return found, _bytes(file, found.st_size)
        finally:
            os.close(file)

    def _go(self, folder: str) -> None:
        self.close()
        place = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for part in folder.split("/") if folder else ():
                inner = os.open(part, _FOLDER, dir_fd=place)
                os.close(place)
                place = inner
        except OSError:
            os.close(place)
            raise
        self._folder, self._open = folder, place

    def close(self) -> None:
        if self._open >= 0:
            os.close(self._open)
            self._open = -1


def _bytes(file: int, size: int) -> bytes:
    """The bytes of an open file, at most one more than are read."""
    content = os.read(file, min(size, MAX_BYTES) + 1)
    while len(content) <= MAX_BYTES and (more := os.read(file, MAX_BYTES + 1 - len(content))):
        content += more
    return content


def _plain(content: bytes) -> bytes:
    """The bytes as UTF-8 where a mark says that they are something else. Whatever else is wrong with them may stay."""
    if content[:2] in _WIDE:
        return content.decode("utf-16", errors="replace").encode(errors="replace")
    return content[3:] if content.startswith(b"\xef\xbb\xbf") else content


def _about(path: str, mtime_ns: int, size: int, digest: str, language: str, symbols: list[Row]) -> tuple[Any, ...]:
    count = sum(1 for row in symbols if row[1] != IMPORT)
    return (path, language, mtime_ns, size, digest, count, outline_of(symbols))


def unreadable(path: str, mtime_ns: int, size: int) -> Answer:
    """What is kept of a file that no parser survives: that it is there, so that it is left alone until it changes."""
    segment = Segment()
    segment.add(_about(path, mtime_ns, size, UNREAD, UNREAD, []), [], 0)
    return [], segment.packed()

"""Keeps what was taken out of files. A file is in the index with all of its names, or not at all."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from rookery.db.bulk import add_rows
from rookery.db.tx import Tx
from rookery.domains.code.reading import Answer, Same
from rookery.domains.code.segment import IMPORTS, Packed
from rookery.domains.code.tables import files, projects, segments, words
from rookery.identity.store import now_ms

T = TypeVar("T")
FORMAT = "2"
"""Another one makes every index be built anew, for when names are taken out of files in another way."""
AT_ONCE = 500
"""How many values a statement is given at most."""
SEGMENTS_AT_ONCE = 20
"""How many segments are dropped in one transaction; each has a row for every bucket."""
FEW_LIVE = 4
MANY_SPARSE = 32
"""From so many segments on with few live files it pays to read these anew, so that they become one."""
FILE_COLUMNS = (
    "project_no", "file_no", "segment_no", "tenant", "path", "language", "mtime_ns", "size", "hash", "symbols",
    "outline",
)  # fmt: skip
SEGMENT_COLUMNS = ("project_no", "segment_no", "tenant", "live", "starts", "defined")
_FIND = sa.select(projects).where(
    projects.c.project_id == sa.bindparam("of_project"), projects.c.tenant == sa.bindparam("of_tenant")
)
_NO: "sa.BindParameter[int]" = sa.bindparam("of_no")
_KNOWN = sa.select(files.c.path, files.c.mtime_ns, files.c.size, files.c.hash).where(files.c.project_no == _NO)
_AT = files.c.path.in_(sa.bindparam("paths", expanding=True))
_KNOWN_SOME = _KNOWN.where(_AT)
_RESERVE = (
    sa.update(projects)
    .where(projects.c.no == sa.bindparam("the_no"))
    .values(last_file=projects.c.last_file + sa.bindparam("more"))
    .returning(projects.c.last_file)
)
_DROP_FILES = sa.delete(files).where(files.c.project_no == _NO, _AT).returning(files.c.segment_no)
_SEGMENT = (segments.c.project_no == _NO, segments.c.segment_no == sa.bindparam("the_segment"))
_SHRINK = (
    sa.update(segments).where(*_SEGMENT).values(live=segments.c.live - sa.bindparam("fewer")).returning(segments.c.live)
)
_DROP_SEGMENT = sa.delete(segments).where(*_SEGMENT)
_DROP_WORDS = sa.delete(words).where(
    words.c.project_no == _NO,
    words.c.bucket.in_(range(IMPORTS + 1)),
    words.c.segment_no == sa.bindparam("the_segment"),
)
_SOME_SEGMENTS = sa.select(segments.c.segment_no).where(segments.c.project_no == _NO).limit(SEGMENTS_AT_ONCE)
_DROP_SOME_FILES = (
    sa.delete(files)
    .where(
        files.c.project_no == _NO,
        files.c.file_no.in_(sa.select(files.c.file_no).where(files.c.project_no == _NO).limit(AT_ONCE)),
    )
    .returning(files.c.file_no)
)
_SPARSE = (
    sa.select(files.c.path, files.c.size, files.c.segment_no)
    .join(segments, sa.and_(segments.c.project_no == files.c.project_no, segments.c.segment_no == files.c.segment_no))
    .where(files.c.project_no == _NO, segments.c.live <= FEW_LIVE)
    .order_by(files.c.path)
    .limit(AT_ONCE)
)
_TOUCH = (
    sa.update(files)
    .where(files.c.project_no == _NO, files.c.path == sa.bindparam("at"))
    .values(mtime_ns=sa.bindparam("new_mtime"), size=sa.bindparam("new_size"))
)
_INDEXED = sa.update(projects).where(projects.c.no == sa.bindparam("the_no")).values(indexed_ms=sa.bindparam("now"))


@dataclass(frozen=True, slots=True)
class Known:
    """A file as the index has it."""

    mtime_ns: int
    size: int
    hash: str


@dataclass(frozen=True, slots=True)
class Index:
    """The index of a project. `complete`: the whole tree has been in it."""

    no: int
    complete: bool


class Indexes:
    """The indexes of one tenant."""

    def __init__(self, tx: Tx, tenant: str) -> None:
        self.tx = tx
        self.tenant = tenant

    def find(self, project_id: str, root: str) -> Index | None:
        """The index of a project; None if there is none of this folder, made in the way of today."""
        row = self.tx.one(_FIND, {"of_tenant": self.tenant, "of_project": project_id})
        if row is None or row.root != root or row.format != FORMAT:
            return None
        return Index(row.no, row.indexed_ms is not None)

    def open(self, project_id: str, root: str) -> Index | None:
        """The index of a project. One of another folder or format is emptied first, a portion each time: as long as
        there is more, the answer is None."""
        insert = (sqlite if self.tx.dialect == "sqlite" else postgresql).insert(projects)
        first = {"tenant": self.tenant, "project_id": project_id, "last_file": 0, "indexed_ms": None}
        self.tx.run(insert.values(**first, root="", format="").on_conflict_do_nothing())
        row = self.tx.one(_FIND.with_for_update(), {"of_tenant": self.tenant, "of_project": project_id})
        assert row is not None
        if row.root == root and row.format == FORMAT:
            return Index(row.no, row.indexed_ms is not None)
        empty = self._empty_some(row.no)
        # One that is half empty is nobody's.
        new = {"root": root, "format": FORMAT} if empty else {"root": "", "format": ""}
        self.tx.run(sa.update(projects).where(projects.c.no == row.no).values(**new, indexed_ms=None))
        return Index(row.no, False) if empty else None

    def _empty_some(self, no: int) -> bool:
        """Drop some rows of an index. Whether these were the last."""
        values: dict[str, object] = {"of_no": no}
        some: list[int] = [row.segment_no for row in self.tx.all(_SOME_SEGMENTS, values)]
        for segment in some:
            self.tx.run(_DROP_WORDS, [{**values, "the_segment": segment}])
            self.tx.run(_DROP_SEGMENT, [{**values, "the_segment": segment}])
        dropped = self.tx.all(_DROP_SOME_FILES, values)
        return len(some) < SEGMENTS_AT_ONCE and len(dropped) < AT_ONCE

    def known(self, no: int, paths: Sequence[str] | None = None) -> dict[str, Known]:
        """The files of an index by their paths: all of them, or those at some paths."""
        if paths is None:
            rows = self.tx.all(_KNOWN, {"of_no": no})
        else:
            rows = [row for part in parts(paths) for row in self.tx.all(_KNOWN_SOME, {"of_no": no, "paths": part})]
        return {row.path: Known(row.mtime_ns, row.size, row.hash) for row in rows}

    def sparse(self, no: int, chunk: int) -> list[str]:
        """The files of segments that have few left, if reading them in chunks of so many bytes makes half as many
        segments or fewer; otherwise none."""
        rows = self.tx.all(_SPARSE, {"of_no": no})
        there, fewest = len({row.segment_no for row in rows}), sum(row.size for row in rows) // chunk + 1
        return [row.path for row in rows] if there >= max(MANY_SPARSE, 2 * fewest) else []

    def save(self, no: int, answers: Sequence[Answer]) -> None:
        """Put files in the place of what the index has at their paths."""
        packed = [each for _, each in answers if each[0]]
        count = sum(len(each[0]) for each in packed)
        if packed:
            # On PostgreSQL whoever else changes this index waits here.
            first: int = self.tx.scalar(_RESERVE, {"the_no": no, "more": count}) - count + 1
            self._drop(no, [about[0] for each in packed for about in each[0]])
            self._add(no, packed, first)
        same = [each for some, _ in answers for each in some]
        if same:
            self.tx.run(_TOUCH, [_touched(no, each) for each in same])

    def remove(self, no: int, paths: Sequence[str]) -> None:
        """Take files out of the index."""
        self.tx.scalar(_RESERVE, {"the_no": no, "more": 0})
        self._drop(no, paths)

    def finish(self, no: int) -> None:
        """The whole tree is in the index."""
        self.tx.run(_INDEXED, [{"the_no": no, "now": now_ms()}])

    def _add(self, no: int, packed: Sequence[Packed], first: int) -> None:
        file_rows: list[tuple[object, ...]] = []
        segment_rows: list[tuple[object, ...]] = []
        word_rows: list[tuple[object, ...]] = []
        for found, starts, defined, used in packed:
            file_rows += [(no, first + at, first, self.tenant, *about) for at, about in enumerate(found)]
            segment_rows.append((no, first, self.tenant, len(found), str(starts), defined))
            word_rows += [(no, bucket, first, self.tenant, text) for bucket, text in used.items()]
            first += len(found)
        # In the order of the key, so that pages are written one after the other.
        word_rows.sort()
        add_rows(self.tx, "code_files", FILE_COLUMNS, file_rows)
        add_rows(self.tx, "code_segments", SEGMENT_COLUMNS, segment_rows)
        add_rows(self.tx, "code_words", ("project_no", "bucket", "segment_no", "tenant", "used"), word_rows)

    def _drop(self, no: int, paths: Sequence[str]) -> None:
        gone: dict[int, int] = {}
        for part in parts(paths):
            for row in self.tx.all(_DROP_FILES, {"of_no": no, "paths": part}):
                gone[row.segment_no] = gone.get(row.segment_no, 0) + 1
        for segment, fewer in gone.items():
            values = {"of_no": no, "the_segment": segment}
            if self.tx.scalar(_SHRINK, {**values, "fewer": fewer}) == 0:
                self.tx.run(_DROP_WORDS, [values])
                self.tx.run(_DROP_SEGMENT, [values])


def _touched(no: int, same: Same) -> dict[str, object]:
    path, mtime_ns, size = same
    return {"of_no": no, "at": path, "new_mtime": mtime_ns, "new_size": size}


def parts(values: Sequence[T]) -> Iterator[Sequence[T]]:
    """Values in portions that a statement can be given."""
    for start in range(0, len(values), AT_ONCE):
        yield values[start : start + AT_ONCE]

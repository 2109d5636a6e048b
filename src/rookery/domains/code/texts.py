"""The texts of defined names that searches of this process have read: a segment never changes, it only goes."""

from collections.abc import Mapping

import sqlalchemy as sa

from rookery.db.tx import Tx
from rookery.domains.code.matching import fold
from rookery.domains.code.store import parts
from rookery.domains.code.tables import segments

MAX_CHARACTERS = 100_000_000
_THERE = sa.select(segments.c.segment_no).where(segments.c.project_no == sa.bindparam("of_no"))
_DEFINED = sa.select(segments.c.segment_no, segments.c.defined).where(
    segments.c.project_no == sa.bindparam("of_no"), segments.c.segment_no.in_(sa.bindparam("numbers", expanding=True))
)
Texts = Mapping[int, str]


class DefinedTexts:
    """Texts by project and segment, as they are and in small letters. Safe from any thread."""

    def __init__(self) -> None:
        self._kept: dict[tuple[int, int], tuple[str, str]] = {}
        self._size = 0

    def of(self, tx: Tx, no: int) -> tuple[Texts, Texts]:
        """The texts of every segment of a project that is there now, as they are and in small letters."""
        there: list[int] = [row.segment_no for row in tx.all(_THERE, {"of_no": no})]
        found = {segment: kept for segment in there if (kept := self._kept.get((no, segment))) is not None}
        missing = [segment for segment in there if segment not in found]
        for part in parts(missing):
            for row in tx.all(_DEFINED, {"of_no": no, "numbers": part}):
                found[row.segment_no] = (row.defined, fold(row.defined))
        for segment in missing:
            self._keep((no, segment), found[segment])
        return {n: both[0] for n, both in found.items()}, {n: both[1] for n, both in found.items()}

    def _keep(self, key: tuple[int, int], texts: tuple[str, str]) -> None:
        self._size += 2 * len(texts[0])
        if self._size > MAX_CHARACTERS:
            # Those that are gone from the database are among them; what is asked for is soon back.
            self._kept, self._size = {}, 2 * len(texts[0])
        self._kept[key] = texts

"""How a query's words choose the chunks that are compared with each other."""

from collections.abc import Sequence

import pytest

from rookery.domains.knowledge import keyword
from rookery.domains.knowledge.keyword import CLOSELY, Choice, Coverage, choose, looked_for
from rookery.fulltext.query import Term
from tests.domains.knowledge.library import Library

RARE, MIDDLE, COMMON, ABSENT = looked_for("rare middle common absent")
MANY = CLOSELY * 10


def never(some: Sequence[Term]) -> bool:
    return False


def test_few_chunks_are_all_compared() -> None:
    assert choose([(COMMON, 90), (RARE, 10), (ABSENT, 0)], never) == Choice([RARE, COMMON])
    assert choose([(ABSENT, 0)], never) == Choice([])
    assert choose([(COMMON, MANY)], never) == Choice([COMMON])


def test_chunks_with_every_word_come_first() -> None:
    assert choose([(COMMON, MANY), (RARE, 10)], lambda some: True) == Choice([RARE, COMMON], "every")


def test_otherwise_rare_words_decide_and_common_ones_count() -> None:
    counts = [(COMMON, MANY), (MIDDLE, CLOSELY), (RARE, 10), (ABSENT, 0)]
    assert choose(counts, never) == Choice([RARE], "any", [RARE, MIDDLE, COMMON])


def test_of_common_words_as_many_as_possible_must_be_there_together() -> None:
    counts = [(COMMON, MANY), (MIDDLE, MANY - 1), (RARE, MANY - 2)]
    assert choose(counts, lambda some: len(some) < 3) == Choice([RARE, MIDDLE], "every")
    assert choose(counts, never) == Choice([RARE], "every")


@pytest.mark.parametrize(("text", "part"), [("Rotating keys", 2 / 3), ("a key", 1 / 3), ("élan", 0), ("", 0)])
def test_coverage_is_the_part_of_the_words_that_a_text_has(text: str, part: float) -> None:
    assert Coverage(looked_for("rotate the keys of encryption")).of(text) == pytest.approx(part)


def test_words_with_accents_are_covered_as_they_are_found() -> None:
    coverage = Coverage(looked_for("cafe élan"))
    assert coverage.of("Das Café hat Elan, ja.") == 1


async def test_the_choice_changes_the_cost_and_not_what_is_found_first(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    await library.open()
    for number in range(30):
        extra = "rotate encryption " if number == 7 else "rotate " if number == 8 else ""
        await library.index(f"{number}.txt", f"{extra}the key of number{number} is here with the value")
    for closely in (4_000, 3):
        monkeypatch.setattr(keyword, "CLOSELY", closely)
        for query, first in (("rotate encryption key", "7.txt"), ("number9 value", "9.txt"), ("number3", "3.txt")):
            found = await library.search(query, min_score=0)
            assert found.results[0]["path"] == first, (closely, query)
        assert (await library.search("nowhere value key")).results
        assert (await library.search("nowhere")).results == []

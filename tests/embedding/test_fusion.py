"""Ranked lists become one: what several of them have near the top comes first."""

from hypothesis import given
from hypothesis import strategies as st

from rookery.embedding.fusion import hybrid, rrf

LISTS = st.lists(st.lists(st.integers(0, 30), unique=True, max_size=20), max_size=4)


def order(*lists: list[str]) -> list[str]:
    return [item for item, _ in rrf(lists)]


def test_nothing_comes_of_nothing() -> None:
    assert rrf([]) == []
    assert rrf([[], []]) == []


def test_one_list_keeps_its_order() -> None:
    assert order(["c", "a", "b"]) == ["c", "a", "b"]


def test_what_both_lists_have_comes_before_what_one_has() -> None:
    assert order(["a", "both"], ["b", "both"])[0] == "both"


def test_equal_sums_keep_the_order_in_which_they_were_met() -> None:
    assert order(["a"], ["b"], ["c"]) == ["a", "b", "c"]


def test_a_heavier_list_wins() -> None:
    assert [item for item, _ in rrf([["a"], ["b"]], weights=[1.0, 2.0])] == ["b", "a"]


def test_an_item_counts_once_in_a_list() -> None:
    assert rrf([["a", "a"]]) == rrf([["a"]])


def test_a_sum_is_that_of_the_reciprocal_ranks() -> None:
    assert dict(rrf([["a", "b"], ["b"]], k=60)) == {"a": 1 / 61, "b": 1 / 62 + 1 / 61}


@given(LISTS)
def test_every_item_appears_once_and_best_first(lists: list[list[int]]) -> None:
    fused = rrf(lists)
    assert {item for item, _ in fused} == {item for items in lists for item in items}
    assert len(fused) == len(dict(fused))
    scores = [score for _, score in fused]
    assert scores == sorted(scores, reverse=True)


@given(LISTS)
def test_who_is_never_behind_another_in_any_list_is_not_behind_in_the_end(lists: list[list[int]]) -> None:
    place = {item: rank for rank, (item, _) in enumerate(rrf(lists))}
    places = [{item: rank for rank, item in enumerate(items)} for items in lists]
    for one in place:
        for other in place:
            ahead = [rank.get(one, 99) < rank.get(other, 99) for rank in places if one in rank or other in rank]
            if one != other and ahead and all(ahead):
                assert place[one] < place[other]


WORDS, MEANING = [("word", 9.0), ("x", 8.5)], ["meaning", "y"]


def test_words_lead_if_the_best_of_them_has_every_word() -> None:
    assert hybrid(WORDS, MEANING, 1.0)[:2] == ["word", "x"]


def test_meaning_leads_if_words_are_missing() -> None:
    assert hybrid(WORDS, MEANING, 0.6)[:2] == MEANING


def test_a_find_by_words_that_is_far_ahead_counts_although_words_are_missing() -> None:
    near, far = [("x", 9.0), ("word", 8.9)], [("word", 9.0), ("x", 1.0)]
    assert hybrid(near, ["meaning", "word"], 0.5)[0] == "meaning"
    assert hybrid(far, ["meaning", "word"], 0.5)[0] == "word"


def test_without_vectors_the_order_is_that_of_the_words() -> None:
    assert hybrid(WORDS, [], 0.0) == ["word", "x"]


def test_without_words_the_order_is_that_of_the_vectors() -> None:
    assert hybrid([], MEANING, 0.0) == MEANING


def test_words_of_no_relevance_do_no_harm() -> None:
    assert hybrid([("word", 0.0), ("x", 0.0)], MEANING, 0.0)[:2] == MEANING


FOUND = st.lists(st.integers(), unique=True, max_size=10)


@given(FOUND, FOUND, st.floats(0, 1))
def test_nothing_that_was_found_is_lost(keyword: list[int], vectors: list[int], coverage: float) -> None:
    ranked = [(item, 1.0 / place) for place, item in enumerate(keyword, start=1)]
    assert sorted(hybrid(ranked, vectors, coverage)) == sorted({*keyword, *vectors})

"""Ids say in which order things were made."""

import itertools
import threading

from rookery.core.ids import new_id


def test_ids_sort_in_the_order_they_were_made() -> None:
    made = [new_id("itm") for _ in range(5000)]
    assert made == sorted(made)
    assert {len(each) for each in made} == {len("itm-") + 32}


def test_no_two_threads_make_the_same_id() -> None:
    made: list[str] = []
    threads = [threading.Thread(target=lambda: made.extend([new_id("itm") for _ in range(2000)])) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(set(made)) == 16_000


def test_the_next_id_cannot_be_guessed_from_the_last() -> None:
    made = [int(new_id("itm").partition("-")[2], 16) for _ in range(1000)]
    assert min(later - earlier for earlier, later in itertools.pairwise(made)) > 2**20

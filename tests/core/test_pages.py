"""Cursors: opaque to the caller, refused if they are not ours."""

import base64

import pytest

from rookery.core.errors import InvalidParams
from rookery.core.pages import decode_cursor, encode_cursor, page


@pytest.mark.parametrize("key", ["1", "agt-01k9", "ünïcode ✓", "", "a" * 500])
def test_a_cursor_leads_back_to_its_key(key: str) -> None:
    assert decode_cursor(encode_cursor(key)) == key


def test_no_cursor_is_the_first_page() -> None:
    assert decode_cursor(None) is None


@pytest.mark.parametrize("cursor", ["", "x", "!!!!", "ünï", "bm8", "e30", base64.b64encode(b'{"after": 7}').decode()])
def test_a_cursor_that_we_did_not_make_is_refused(cursor: str) -> None:
    with pytest.raises(InvalidParams):
        decode_cursor(cursor)


def test_pages_of_a_list_hold_every_item_once_whatever_comes_and_goes() -> None:
    names = [f"n{number:03d}" for number in range(25)]
    first, cursor = page("names", names, str, None, 10)
    assert (first, cursor is not None) == (names[:10], True)
    changed = ["a", *names[:9], *names[10:], "z"]
    second, cursor = page("names", changed, str, cursor, 10)
    assert second == names[10:20]
    third, cursor = page("names", changed, str, cursor, 10)
    assert (third, cursor) == ([*names[20:], "z"], None)


def test_a_list_that_fits_has_no_next_page() -> None:
    for names in ([], ["a"], ["a", "b"]):
        assert page("names", names, str, None, 2) == (names, None)


def test_a_cursor_of_another_list_is_foreign() -> None:
    _, cursor = page("names", ["a", "b"], str, None, 1)
    assert page("names", ["a", "b"], str, cursor, 1) == (["b"], None)
    with pytest.raises(InvalidParams):
        page("others", ["a", "b"], str, cursor, 1)

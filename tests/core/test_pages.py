"""Cursors: opaque to the caller, refused if they are not ours."""

import base64

import pytest

from rookery.core.errors import InvalidParams
from rookery.core.pages import decode_cursor, encode_cursor


@pytest.mark.parametrize("key", ["1", "agt-01k9", "ünïcode ✓", "", "a" * 500])
def test_a_cursor_leads_back_to_its_key(key: str) -> None:
    assert decode_cursor(encode_cursor(key)) == key


def test_no_cursor_is_the_first_page() -> None:
    assert decode_cursor(None) is None


@pytest.mark.parametrize("cursor", ["", "x", "!!!!", "ünï", "bm8", "e30", base64.b64encode(b'{"after": 7}').decode()])
def test_a_cursor_that_we_did_not_make_is_refused(cursor: str) -> None:
    with pytest.raises(InvalidParams):
        decode_cursor(cursor)

import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rookery.domains.memory.words import Owner, Tokens, repeats, tsvector
from rookery.fulltext.words import is_duplicate, normalized
from rookery.sealing.keyring import Keyring

OWNER = Owner("default", "agent:agt-1")
WORDS = [first + second + third for first in "bdk" for second in "aeiou" for third in "lmnrt"]
KEYRINGS = [None, Keyring(bytes(range(32)))]


@st.composite
def alike(draw: st.DrawFn) -> tuple[str, str]:
    """Two texts, the second made of the first by leaving out and adding a few words."""
    first = draw(st.lists(st.sampled_from(WORDS), min_size=1, max_size=60, unique=True))
    lost = draw(st.sets(st.sampled_from(first), max_size=9))
    added = draw(st.lists(st.text(string.ascii_lowercase, min_size=1, max_size=5), max_size=4))
    return " ".join(first), " ".join([*(word for word in first if word not in lost), *added])


@pytest.mark.parametrize("keyring", KEYRINGS)
@given(alike())
@settings(max_examples=200, deadline=None)
def test_a_text_that_repeats_another_has_one_of_its_telling_groups_whole(
    keyring: Keyring | None, texts: tuple[str, str]
) -> None:
    one, other = texts
    tokens = Tokens(OWNER, keyring)
    if is_duplicate(normalized(one), normalized(other)):
        held = set(tokens.of(other))
        assert any(set(group) <= held for group in tokens.telling_groups(one))


def test_a_text_without_words_repeats_nothing_that_could_be_found() -> None:
    assert [group for group in Tokens(OWNER, None).telling_groups("?!") if group] == []


@pytest.mark.parametrize(
    ("key", "one", "other_key", "other", "same"),
    [
        ("a", "tabs are preferred", "b", "Tabs are PREFERRED!", True),
        ("a", "tabs are preferred", "b", "spaces are preferred", False),
        ("a", " ".join(WORDS[:20]), "b", " ".join([*WORDS[:19], "xyz"]), True),
        ("a", " ".join([*WORDS[:19], "8080"]), "b", " ".join([*WORDS[:19], "9090"]), False),
        ("host xyz", " ".join([*WORDS[:19], "xyz"]), "host uvw", " ".join([*WORDS[:19], "uvw"]), False),
    ],
)
def test_what_differs_in_a_number_or_in_what_a_key_names_says_something_else(
    key: str, one: str, other_key: str, other: str, same: bool
) -> None:
    assert repeats(key, one, other_key, other) is same
    assert repeats(other_key, other, key, one) is same


def test_tokens_say_whose_they_are_and_sealed_ones_nothing_else() -> None:
    plain, sealed = Tokens(OWNER, None).of("deploying"), Tokens(OWNER, KEYRINGS[1]).of("deploying")
    assert plain == [OWNER.tag + "deploi"]
    assert len(sealed[0]) == 20
    assert Tokens(Owner("other", OWNER.name), KEYRINGS[1]).of("deploying") != sealed
    assert tsvector(["b", "a", "b"]) == "'b':1,3 'a':2"

"""The words of BIP-39: in any of its languages, however they were typed, and their seed."""

import secrets
import unicodedata
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mnemonic import Mnemonic

from rookery.sealing.mnemonic import COUNTS, LANGUAGES, fault_of, plain_words, seed_of

WORDS = "legal winner thank year wave sausage worth useful legal winner thank yellow"
# The test vectors of the standard have the passphrase TREZOR; these seeds are without one.
SEED = (
    "878386efb78845b3355bd15ea4d39ef97d179cb712b77d5c12b6be415fffeffe"
    "5f377ba02bf3f8544ab800b955e51fbff09828f682052a20faa6addbbddfb096"
)


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("language", LANGUAGES)
def test_words_of_every_language_and_length_are_right(language: str, count: int) -> None:
    words = Mnemonic(language).to_mnemonic(secrets.token_bytes(count * 4 // 3))
    assert len(words.split()) == count
    assert fault_of(words) is None
    assert seed_of(words) == Mnemonic.to_seed(words)


def test_the_seed_is_that_of_the_standard() -> None:
    assert seed_of(WORDS).hex() == SEED


@pytest.mark.parametrize(
    "typed",
    [
        WORDS.upper(),
        WORDS.title(),
        f"\n  {WORDS}\t\r\n",
        WORDS.replace(" ", "   "),
        WORDS.replace(" ", "\u3000"),
        WORDS.replace(" ", "\u00a0"),
        WORDS.replace(" ", "\n"),
        # Full-width letters, as some keyboards have them.
        "".join(chr(ord(letter) + 0xFEE0) if letter != " " else letter for letter in WORDS),
    ],
)
def test_however_words_are_typed_they_have_the_same_seed(typed: str) -> None:
    assert fault_of(typed) is None
    assert seed_of(typed).hex() == SEED


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("form", ["NFC", "NFD", "NFKC", "NFKD"])
def test_every_unicode_form_has_the_same_seed(language: str, form: Literal["NFC", "NFD", "NFKC", "NFKD"]) -> None:
    words = Mnemonic(language).to_mnemonic(bytes(range(32)))
    typed = unicodedata.normalize(form, words)
    assert fault_of(typed) is None
    assert fault_of(typed.upper()) is None
    assert seed_of(typed) == Mnemonic.to_seed(words)


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_word_of_a_list_is_changed(language: str) -> None:
    assert [word for word in Mnemonic(language).wordlist if plain_words(word) != word] == []


@given(entropy=st.binary(min_size=16, max_size=16), place=st.integers(0, 11), other=st.integers(0, 2047))
def test_another_word_is_found_by_the_checksum_unless_it_fits(entropy: bytes, place: int, other: int) -> None:
    english = Mnemonic("english")
    words = english.to_mnemonic(entropy).split()
    words[place] = english.wordlist[other]
    changed = " ".join(words)
    if not any(Mnemonic(language).check(changed) for language in LANGUAGES):
        assert "checksum" in str(fault_of(changed))
    else:
        assert fault_of(changed) is None


def test_words_of_two_languages_are_refused() -> None:
    mixed = " ".join([*WORDS.split()[:6], *Mnemonic("spanish").to_mnemonic(bytes(16)).split()[6:]])
    assert fault_of(mixed)


def test_words_that_two_languages_have_are_right_if_they_are_in_one() -> None:
    words = Mnemonic("chinese_traditional").to_mnemonic(bytes(16))
    assert fault_of(words) is None


@pytest.mark.parametrize("typed", ["", " ", WORDS.replace(" ", ""), WORDS.replace(" ", "-"), WORDS[:-7], "\0" * 12])
def test_what_are_no_twelve_words_is_refused(typed: str) -> None:
    assert "it must have 12, 15, 18, 21 or 24" in str(fault_of(typed))


@given(st.text(max_size=300))
def test_no_text_breaks_the_check_or_is_repeated_by_it(text: str) -> None:
    said = fault_of(" ".join([text, *["zebraa"] * 11]))
    assert said is None or "zebraa" not in said

from hypothesis import given
from hypothesis import strategies as st

from rookery.fulltext.words import STOP_WORDS, is_duplicate, normalized, words

NUXT = "Nuxt auto-imports files in app/utils/ — don't add explicit imports or you'll get already-defined errors"


def alike(one: str, other: str) -> bool:
    return is_duplicate(normalized(one), normalized(other))


def test_case_punctuation_stop_words_and_spaces_say_nothing() -> None:
    assert normalized("  The  CACHE,\n(must) be\tcleared!! ") == "cache cleared"
    assert alike(NUXT, NUXT.upper().replace(" ", "\n ").replace("—", ";"))


def test_accents_and_the_way_they_are_encoded_say_nothing() -> None:
    assert normalized("Ångström caché") == normalized("A\u030angstro\u0308m CACHE\u0301") == "angstrom cache"
    assert normalized("STRASSE") == normalized("straße")


def test_texts_of_stop_words_alone_keep_them_and_texts_without_words_are_empty() -> None:
    assert normalized("to be or not to be") == "to be or not to be"
    assert normalized("¡¿… 🙂 --- ___ \x00 \ud800") == ""


def test_a_text_in_another_alphabet_keeps_its_words() -> None:
    assert words("Кэш очищается, 日本語 ÉTÉ 42") == ["кэш", "очищается", "日本語", "ete", "42"]
    assert not alike("кэш очищается перед сборкой", "кэш хранится после сборки")


def test_one_word_in_twenty_more_or_less_is_the_same() -> None:
    twenty = [f"word{number}" for number in range(20)]
    assert alike(" ".join(twenty), " ".join(twenty[1:]))
    assert alike(" ".join(twenty), " ".join([*twenty[1:], "another"]))
    assert alike(" ".join(twenty), " ".join(reversed(twenty)))


def test_the_limit_is_85_of_100_words() -> None:
    many = [f"word{number}" for number in range(100)]
    assert alike(" ".join(many), " ".join(many[:85]))
    assert not alike(" ".join(many), " ".join(many[:84]))


def test_two_texts_about_the_same_thing_are_not_the_same() -> None:
    assert not alike(NUXT, "Nuxt auto-imports components too, so a component's folder becomes part of its tag name")


@given(st.text(st.characters()), st.text(st.characters()))
def test_whatever_is_written_sameness_goes_both_ways_and_normalising_twice_changes_nothing(
    one: str, other: str
) -> None:
    assert alike(one, one)
    assert alike(one, other) == alike(other, one)
    once = normalized(one)
    assert normalized(once) == once
    assert "  " not in once
    assert once == once.strip()


@given(st.lists(st.sampled_from(sorted(STOP_WORDS)), max_size=5))
def test_stop_words_around_a_text_change_nothing(extra: list[str]) -> None:
    assert normalized(" ".join([*extra, NUXT, *extra])) == normalized(NUXT)

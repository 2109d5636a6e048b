"""Porter's stemmer, letter for letter as SQLite's full-text index has it, for databases that lack that one."""

from functools import lru_cache

LONGEST = 64
"""Longer words have no ending that means anything."""

_STEP_2 = (
    ("ational", "ate"), ("tional", "tion"), ("enci", "ence"), ("anci", "ance"), ("izer", "ize"), ("logi", "log"),
    ("bli", "ble"), ("alli", "al"), ("entli", "ent"), ("eli", "e"), ("ousli", "ous"), ("ization", "ize"),
    ("ation", "ate"), ("ator", "ate"), ("alism", "al"), ("iveness", "ive"), ("fulness", "ful"), ("ousness", "ous"),
    ("aliti", "al"), ("iviti", "ive"), ("biliti", "ble"),
)  # fmt: skip
_STEP_3 = (
    ("icate", "ic"), ("ative", ""), ("alize", "al"), ("iciti", "ic"), ("ical", "ic"), ("ful", ""), ("ness", ""),
)  # fmt: skip
_STEP_4 = (
    "al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ion", "ou", "ism", "ate", "iti",
    "ous", "ive", "ize",
)  # fmt: skip


@lru_cache(maxsize=20_000)
def stem(word: str) -> str:
    """The word without its endings; `word` is in lower case."""
    if not 3 <= len(word.encode()) <= LONGEST:
        return word
    word = _step_1(word)
    word = _replaced(word, _STEP_2)
    word = _replaced(word, _STEP_3)
    for ending in _STEP_4:
        if _ends(word, ending):
            rest = word[: -len(ending)]
            if _measure(rest) > 1 and (ending != "ion" or rest[-1] in "st"):
                word = rest
            break
    return _step_5(word)


def _shape(word: str) -> str:
    """A letter for each: v for a vowel, c for any other; y is a vowel after a consonant."""
    shape = ""
    for letter in word:
        vowel = letter in "aeiou" or (letter == "y" and shape[-1:] == "c")
        shape += "v" if vowel else "c"
    return shape


def _measure(word: str) -> int:
    """How often a consonant follows a vowel."""
    return _shape(word).count("vc")


def _ends(word: str, ending: str) -> bool:
    return len(word) > len(ending) and word.endswith(ending)


def _is_short(word: str) -> bool:
    """Whether it ends in consonant, vowel, consonant as `hop` does, so that an e was lost after it."""
    return word[-1] not in "wxy" and _shape(word)[-3:] == "cvc"


def _has_vowel(word: str) -> bool:
    return any(letter in "aeiou" or (letter == "y" and place > 0) for place, letter in enumerate(word))


def _replaced(word: str, endings: tuple[tuple[str, str], ...]) -> str:
    for ending, other in endings:
        if _ends(word, ending):
            rest = word[: -len(ending)]
            return rest + other if _measure(rest) > 0 else word
    return word


def _step_1(word: str) -> str:
    """Plurals, -ed, -ing, and a last y."""
    if word.endswith("s") and not word.endswith("ss"):
        word = word[:-2] if _ends(word, "sses") or _ends(word, "ies") else word[:-1]
    if _ends(word, "eed"):
        word = word[:-1] if _measure(word[:-3]) > 0 else word
    elif _ends(word, "ed") and _has_vowel(word[:-2]):
        word = _mended(word[:-2])
    elif _ends(word, "ing") and _has_vowel(word[:-3]):
        word = _mended(word[:-3])
    if word.endswith("y") and _has_vowel(word[:-1]):
        word = word[:-1] + "i"
    return word


def _mended(word: str) -> str:
    """What is left of a word without its -ed or -ing, as it was before one of these was put to it."""
    if any(_ends(word, ending) for ending in ("at", "bl", "iz")):
        return word + "e"
    if word[-2:-1] == word[-1] and word[-1] not in "aeioulsz":
        return word[:-1]
    return word + "e" if _measure(word) == 1 and _is_short(word) else word


def _step_5(word: str) -> str:
    """A last e, and one of two l."""
    if word.endswith("e"):
        rest = word[:-1]
        if _measure(rest) > 1 or (_measure(rest) == 1 and not _is_short(rest)):
            word = rest
    return word[:-1] if word.endswith("ll") and _measure(word[:-1]) > 1 else word

"""What a text says, apart from how it is written down: its words, and whether two texts say the same."""

import re
import unicodedata
from collections.abc import Iterator

ALIKE = 0.85
"""Two texts repeat each other if they share this part of all the words that either has."""
_STOP_WORDS = (
    "a about after all also am an and any are as at be because been before being both but by can could did do does "
    "for from had has have he her here his how i if in into is it its itself just may me more most must my no nor not "
    "of off on once only or other our out over own same she should so some such than that the their them then there "
    "these they this those through to too under until up very was we were what when where which while who whom why "
    "will with would you your"
)
STOP_WORDS = frozenset(_STOP_WORDS.split())
_WORD = re.compile(r"[^\W_]+")


def raw_words(text: str) -> Iterator[str]:
    """Runs of letters and digits, as they are written."""
    return (found[0] for found in _WORD.finditer(unicodedata.normalize("NFC", text)))


def folded(word: str) -> str:
    """The word without case and accents: letters and digits only, or empty."""
    if word.isascii():
        return word.lower()
    # A letter of a mathematical alphabet is a plain one, with a case, only once it is taken apart.
    plain = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", word).casefold())
    return "".join(letter for letter in plain if letter.isalnum())


def words(text: str) -> list[str]:
    """The words of a text in their order, without case and accents."""
    return [word for word in map(folded, raw_words(text)) if word]


def normalized(text: str) -> str:
    """The words that carry the meaning, one space between them; every word if none does, and empty without words."""
    every = words(text)
    return " ".join([word for word in every if word not in STOP_WORDS] or every)


def is_duplicate(one: str, other: str) -> bool:
    """Whether two normalised texts are equal, or share nearly all their words."""
    if one == other:
        return True
    first, second = set(one.split()), set(other.split())
    return len(first & second) >= ALIKE * len(first | second)

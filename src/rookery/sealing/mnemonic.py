"""Recovery words by BIP-39: whether they are right, and the seed that they stand for.

Nothing here raises with the words in its frames: a fault comes back as a sentence that does not repeat them.
"""

import unicodedata

from mnemonic import Mnemonic

COUNTS = (12, 15, 18, 21, 24)
# The lists of the standard, English first since nearly all words are. The package has two more, but its own check
# refuses words of those as soon as they have an accent.
LANGUAGES = (
    "english",
    "chinese_simplified",
    "chinese_traditional",
    "czech",
    "french",
    "italian",
    "japanese",
    "korean",
    "portuguese",
    "spanish",
)


def plain_words(text: str) -> str:
    """The words as they are compared and hashed: NFKD as BIP-39 demands, small letters, one space between two."""
    return " ".join(unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).lower()).split())


def fault_of(text: str) -> str | None:
    """What is wrong with the words, as the rest of a sentence that does not tell them; None if they are right.

    The words may be of any language that BIP-39 has a list for, but all of one.
    """
    words = plain_words(text)
    listed = words.split()
    if len(listed) not in COUNTS:
        many = f"{len(listed)} word{'' if len(listed) == 1 else 's'}"
        return f"has {many}; it must have {', '.join(str(count) for count in COUNTS[:-1])} or {COUNTS[-1]}"
    nearest: list[int] | None = None
    for language in LANGUAGES:
        known = Mnemonic(language)
        vocabulary = set(known.wordlist)
        strange = [place for place, word in enumerate(listed, 1) if word not in vocabulary]
        if not strange and known.check(words):
            return None
        if nearest is None or len(strange) < len(nearest):
            nearest = strange
    if not nearest:
        return "has a wrong checksum: a word is missing, mistyped or in the wrong place"
    places = ", ".join(str(place) for place in nearest[:5])
    return f"has words that are in no BIP-39 list (word {places}{' and more' if nearest[5:] else ''})"


def seed_of(text: str) -> bytes:
    """The 64 bytes that BIP-39 derives from right words, without a passphrase."""
    return Mnemonic.to_seed(plain_words(text))

"""From texts to the tokens that are indexed, and from queries to the tokens that are looked for. No database here.

A token stands for one stem of one owner. Plain it is a tag of the owner and the stem; sealed it is a keyed hash of
both, which tells nobody without the key what was written, and cannot be searched by the beginnings of words.
"""

import hashlib
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from rookery.fulltext.porter import stem
from rookery.fulltext.query import MAX_LETTERS, MAX_TERMS
from rookery.fulltext.words import ALIKE, is_duplicate, normalized
from rookery.sealing.keyring import Keyring

TAG_LETTERS = 12
PURPOSE = "memory-words"
MOST_GROUPS = 16


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose memories: an agent's or a person's, in one tenant."""

    tenant: str
    name: str

    @property
    def tag(self) -> str:
        """What an owner's plain tokens begin with."""
        return hashlib.sha256(f"{self.tenant}\0{self.name}".encode()).hexdigest()[:TAG_LETTERS]


@dataclass(frozen=True, slots=True)
class Sought:
    """One word of a query: the tokens of which any will do, and whether longer plain ones match as well."""

    exact: tuple[str, ...]
    beginning: str | None = None


class Tokens:
    """The tokens of one owner: sealed with a keyring, plain without."""

    def __init__(self, owner: Owner, keyring: Keyring | None) -> None:
        self._owner = owner
        self._tag = owner.tag
        self._keyring = keyring

    def of(self, *texts: str) -> list[str]:
        """The tokens of the words that carry the meaning, in their order."""
        return [self._token(each) for text in texts for each in stems(text)]

    def sought(self, query: str, *, plain: bool) -> list[Sought]:
        """The distinct words of a query, at most 32. `plain`: whether memories that are not sealed are looked for."""
        found: list[Sought] = []
        for each in list(dict.fromkeys(stems(query)))[:MAX_TERMS]:
            sealed = () if self._keyring is None else (self._sealed(self._keyring, each),)
            # Of a single letter the longer words would be too many to mean anything.
            if plain and len(each) > 1:
                found.append(Sought(sealed, self._tag + each))
            elif plain or sealed:
                found.append(Sought((*sealed, self._tag + each) if plain else sealed))
        return found

    def telling_groups(self, text: str) -> list[list[str]]:
        """Groups of tokens, at least one of which is whole in every text that repeats this one.

        Such a text lacks so few of the words that it cannot lack one of each group. Of a long text some groups
        are left out, and one in a hundred thousand repetitions may slip through.
        """
        distinct = list(dict.fromkeys(normalized(text).split()))
        number = int((1 - ALIKE) * len(distinct)) + 1
        groups: dict[int, list[str]] = defaultdict(list)
        # Longer words are rarer, and each group gets some of them.
        for place, word in enumerate(sorted(distinct, key=len, reverse=True)):
            groups[place % number].append(self._token(stem(word[:MAX_LETTERS])))
        size = len(distinct) // number
        return [group[:size] for group in list(groups.values())[:MOST_GROUPS]]

    def _token(self, each: str) -> str:
        return self._tag + each if self._keyring is None else self._sealed(self._keyring, each)

    def _sealed(self, keyring: Keyring, each: str) -> str:
        return keyring.blind(PURPOSE, f"{self._owner.tenant}\0{self._owner.name}\0{each}")


def stems(text: str) -> list[str]:
    """The stems of the words that carry the meaning; of every word, if none does."""
    return [stem(word[:MAX_LETTERS]) for word in normalized(text).split()]


def repeats(key: str, content: str, other_key: str, other: str) -> bool:
    """Whether one memory says nothing that the other does not say, in nearly the same words.

    Two that differ in a number, or in a word that either key names, are about different things.
    """
    first, second = normalized(content), normalized(other)
    if not is_duplicate(first, second):
        return False
    differing = set(first.split()) ^ set(second.split())
    named = set(normalized(key).split()) | set(normalized(other_key).split())
    return not any(word in named or any(map(str.isdigit, word)) for word in differing)


def fts5_any(sought: Sequence[Sought]) -> list[str]:
    """For SQLite: an expression for each word."""
    return [_either([*(f'"{token}"' for token in each.exact), *_starred(each, '"{}"*')], " OR ") for each in sought]


def ts_any(sought: Sequence[Sought]) -> list[str]:
    """For PostgreSQL: the same."""
    return [_either([*(f"'{token}'" for token in each.exact), *_starred(each, "'{}':*")], " | ") for each in sought]


def _starred(each: Sought, form: str) -> list[str]:
    return [] if each.beginning is None else [form.format(each.beginning)]


def _either(parts: Sequence[str], joint: str) -> str:
    return parts[0] if len(parts) == 1 else f"({joint.join(parts)})"


def tsvector(tokens: Sequence[str]) -> str:
    """The tokens as the text of a tsvector."""
    places: dict[str, list[int]] = defaultdict(list)
    for place, token in enumerate(tokens, 1):
        places[token].append(place)
    return " ".join(f"'{token}':{','.join(map(str, found))}" for token, found in places.items())

"""Rewrites the expressions that pathspec makes of .gitignore lines, so that none takes long on any path.

`*a*a*a*b` tries every place for every star. The first place will do for all but the last: whatever stands behind finds
at least as much there. So they become groups that are never entered again, as does what is between two `**`.
"""

import re
from collections.abc import Sequence

_AHEAD, _BETWEEN, _STAR = "(?:.+/)?", "(?:/.+)?", "[^/]*"
_ENDS = ("(?:(?P<ps_d>/)|$)", "(?P<ps_d>/)")
_TOKEN = re.compile(
    "|".join(map(re.escape, (_AHEAD, _BETWEEN, *_ENDS, _STAR, "[^/]+"))) + r"|\[\^?\]?(?:\\.|[^\]\\])*\]|\\.|.",
    re.DOTALL,
)
_EDGES = frozenset({"^", "/", _AHEAD, _BETWEEN, *_ENDS})


def linear(expression: str) -> str:
    """An expression for the same paths. Its time grows with the number of names in a path, and with their length."""
    blocks: list[list[str]] = [[]]
    for token in _TOKEN.findall(expression):
        if token == _BETWEEN:
            blocks.append([])
        else:
            blocks[-1].append(token)
    if len(blocks) == 1:
        return _names(blocks[0])
    first, *middle, last = blocks
    anywhere = first[:2] == ["^", _AHEAD]
    begin = f"^(?>(?:[^/]+/)*?{_names(first[2:])}(?=/))" if anywhere else _names(first)
    inner = "".join(f"(?>(?:/[^/]+)*?{_names(each)}(?=/))" for each in middle)
    return f"{begin}{inner}{_BETWEEN}{_names(last)}"


def _names(tokens: Sequence[str]) -> str:
    """The tokens of some names one after the other, with only the last star of each that may give back."""
    written = ""
    name: list[str] = []
    for token in tokens:
        if token in _EDGES:
            written += _name(name) + token
            name = []
        else:
            # What is none of some characters may still be no slash: git's star and brackets stay within a name.
            outside = token.startswith("[^") and not token.startswith("[^/]")
            name.append(f"(?!/){token}" if outside else token)
    return written + _name(name)


def _name(tokens: Sequence[str]) -> str:
    pieces: list[list[str]] = [[]]
    for token in tokens:
        if token == _STAR:
            pieces.append([])
        else:
            pieces[-1].append(token)
    first, *rest = ["".join(piece) for piece in pieces]
    if not rest:
        return first
    return first + "".join(f"(?>[^/]*?{each})" for each in rest[:-1]) + _STAR + rest[-1]

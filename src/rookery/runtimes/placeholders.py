"""What a script leaves open: `$(issue)`, `$(sha256 docs/$(issue).md)`. `$$(` stands for `$(` itself. Pure."""

from collections.abc import Callable, Mapping
from typing import Any, cast

from rookery.runtimes.script import BadScript

Look = Callable[[str], Any]
"""The value of a name, or BadScript."""


def filled(given: Any, look: Look) -> Any:
    """The same with every placeholder replaced, in lists and objects too. One that stands alone keeps its type."""
    if isinstance(given, str):
        return _text(given, look)
    if isinstance(given, list):
        return [filled(each, look) for each in cast("list[Any]", given)]
    if isinstance(given, Mapping):
        return {name: filled(value, look) for name, value in cast("Mapping[str, Any]", given).items()}
    return given


def _text(text: str, look: Look) -> Any:
    pieces: list[Any] = []
    rest = text
    while "$(" in rest:
        before, _, rest = rest.partition("$(")
        if before.endswith("$"):
            pieces.append(f"{before[:-1]}$(")
            continue
        name, rest = _name(rest)
        pieces += [before, look(str(_text(name, look)).strip())]
    pieces = [piece for piece in (*pieces, rest) if not (isinstance(piece, str) and piece == "")]
    return pieces[0] if len(pieces) == 1 else "".join(map(str, pieces))


def _name(text: str) -> tuple[str, str]:
    """What stands before the parenthesis that closes, and what stands after it."""
    depth = 1
    for at, letter in enumerate(text):
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if depth == 0:
            return text[:at], text[at + 1 :]
    raise BadScript(f"$({text[:40]} is not closed; $$( stands for the two letters themselves")


def member(found: Any, path: str, steps: list[str]) -> Any:
    """What a dotted path leads to, such as `files.0.path`."""
    for step in steps:
        if isinstance(found, Mapping) and step in found:
            found = cast("Mapping[str, Any]", found)[step]
        elif isinstance(found, list) and step.isdigit() and int(step) < len(cast("list[Any]", found)):
            found = cast("list[Any]", found)[int(step)]
        else:
            raise BadScript(f"$({path}) leads to nothing: there is no {step}")
    return found

"""How symbols and references are shown to whoever asks."""

from typing import Any

from rookery.domains.code.search import Mention, Place


def placed(place: Place) -> dict[str, Any]:
    """A symbol with its file and lines, and what it belongs to or has, as far as there is any."""
    symbol = place.symbol
    parent = place.symbols[symbol.parent].name if symbol.parent >= 0 else symbol.container
    members = sum(1 for each in place.symbols if each.parent == place.number)
    shown: dict[str, Any] = {
        "name": symbol.name,
        "kind": symbol.kind,
        "path": place.path,
        "start_line": symbol.start,
        "end_line": symbol.end,
    }
    more = {"in": parent, "members": members, "exported": bool(symbol.exported)}
    return shown | {name: value for name, value in more.items() if value}


def mentioned(mention: Mention) -> dict[str, Any]:
    """A line that mentions a name, and in which symbol that is."""
    inside = mention.inside
    shown: dict[str, Any] = {"path": mention.path, "line": mention.line}
    if inside is not None:
        shown["in"] = {"name": inside.name, "kind": inside.kind, "start_line": inside.start, "end_line": inside.end}
    return shown

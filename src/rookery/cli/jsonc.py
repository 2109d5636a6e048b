"""Inserting into a JSON text, comments and layout included, without writing any of it anew."""

import json
import re
from collections.abc import Sequence
from typing import Any, NamedTuple, cast

BLANK = " \t\r\n"
STRING = r'"(?:\\.|[^"\\])*"'
COMMENTS = re.compile(STRING + r"|//[^\r\n]*|/\*.*?\*/", re.DOTALL)
# A comma with no value before it is matched together with what precedes it, and so stays an error.
TRAILING_COMMAS = re.compile(STRING + r"|[{\[,][ \t\r\n]*,|,(?=[ \t\r\n]*[}\]])", re.DOTALL)
# Python also reads NaN and Infinity, which no client does; `int` refuses their names.
DECODER = json.JSONDecoder(parse_constant=int)


class Member(NamedTuple):
    key: str
    at: int
    value_at: int
    end: int


class JsonText:
    """A JSON object as text. With `comments`, comments and trailing commas are allowed, as editors do."""

    def __init__(self, text: str, *, comments: bool) -> None:
        # Blanking keeps the length, so that a position in `plain` is the same position in `text`.
        bare = " " + text[1:] if text.startswith("\ufeff") else text
        self.text, self.comments = text, comments
        self.uncommented = COMMENTS.sub(_blank, bare) if comments else bare
        self.plain = TRAILING_COMMAS.sub(_blank, self.uncommented) if comments else bare

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing but blanks and comments."""
        return not self.plain.strip(BLANK)

    def value(self) -> dict[str, Any]:
        """What the text says. ValueError if it does not parse or is not an object."""
        try:
            value: Any = DECODER.decode(self.plain)
        except RecursionError:
            raise ValueError("nested too deeply") from None
        if not isinstance(value, dict):
            raise ValueError("not an object")
        return cast("dict[str, Any]", value)

    def with_value(self, path: Sequence[str], value: object) -> str:
        """The text with `value` at `path`, which must be free; missing objects on the way are made.

        ValueError if something else than an object stands on the way, or if the layout leaves no room.
        """
        expected = inside = self.value()
        opening = self._skip(0)
        for depth, key in enumerate(path):
            found = [member for member in self._members(opening)[0] if member.key == key]
            if not found:
                for name in reversed(path[depth + 1 :]):
                    value = {name: value}
                inside[key], after = value, self._with_member(opening, key, value)
                if JsonText(after, comments=self.comments).value() != expected:
                    raise ValueError("laid out in a way that leaves no room for an entry")
                return after
            if len(found) > 1:
                raise ValueError(f"the key {key} stands there twice")
            if not isinstance(inside[key], dict) and depth + 1 < len(path):
                raise ValueError(f"{key} is not an object")
            opening, inside = found[0].value_at, inside[key]
        raise ValueError(f"{path[-1]} is already there")

    def _skip(self, at: int) -> int:
        while self.plain[at] in BLANK:
            at += 1
        return at

    def _members(self, opening: int) -> tuple[list[Member], int]:
        """The members of the object that opens there, and where it closes."""
        found: list[Member] = []
        at = self._skip(opening + 1)
        while self.plain[at] != "}":
            key, colon = DECODER.raw_decode(self.plain, at)
            value_at = self._skip(self._skip(colon) + 1)
            found.append(Member(str(key), at, value_at, DECODER.raw_decode(self.plain, value_at)[1]))
            at = self._skip(found[-1].end)
            at = self._skip(at + 1) if self.plain[at] == "," else at
        return found, at

    def _with_member(self, opening: int, key: str, value: object) -> str:
        """The text with one more member at the end of that object, laid out like its neighbours."""
        text, (members, closing) = self.text, self._members(opening)
        behind = len(text[:closing].rstrip(BLANK))
        tail = text[behind:closing]
        if members and "\n" not in text[opening:closing]:
            ours = f" {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}"
        else:
            newline, outer, unit = "\r\n" if "\r\n" in text else "\n", self._margin(opening), self._unit()
            inner = self._own_margin(members[-1].at) if members else None
            margin = newline + (outer + unit if inner is None else inner)
            body = json.dumps(value, ensure_ascii=False, indent=unit).replace("\n", margin)
            ours = f"{margin}{json.dumps(key)}: {body}"
            tail = tail if "\n" in tail else newline + outer + tail
        if not members:
            return text[:behind] + ours + tail + text[closing:]
        end = members[-1].end
        # Where the last member already ends in a comma, so does ours.
        before, after = ("", ",") if "," in self.uncommented[end:closing] else (",", "")
        return text[:end] + before + text[end:behind] + ours + after + tail + text[closing:]

    def _unit(self) -> str:
        """One step of indentation, as the first member of the whole text shows it."""
        opening = self._skip(0)
        first = next((self._own_margin(member.at) for member in self._members(opening)[0]), None)
        return (first or "").removeprefix(self._margin(opening)) or "  "

    def _line(self, at: int) -> str:
        return self.text[self.text.rfind("\n", 0, at) + 1 : at]

    def _margin(self, at: int) -> str:
        return self._line(at)[: len(self._line(at)) - len(self._line(at).lstrip(" \t"))]

    def _own_margin(self, at: int) -> str | None:
        """The indentation of what stands there, or None where something stands before it in its line."""
        return None if self._line(at).strip(" \t") else self._line(at)


def _blank(match: re.Match[str]) -> str:
    found = match[0]
    return " " * len(found) if found == "," or found.startswith("/") else found

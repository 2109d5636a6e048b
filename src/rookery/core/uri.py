"""Addresses of resources: templates with variables, and the values that an address has for them.

A value reaches a handler, which may put it into a path or a query. So it is decoded once, and what would lead out of
where it belongs matches nothing at all.
"""

import re
from collections.abc import Mapping
from urllib.parse import quote, unquote

MAX_URI = 2048
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:")
_VARIABLE = re.compile(r"\{(\+?)([a-z][a-z0-9_]*)\}")


class Template:
    """A parsed address such as `echo://{message}` or `file:///{+path}`. Without variables it is one address."""

    __slots__ = ("_pattern", "rest", "scheme", "text", "variables")

    def __init__(self, text: str) -> None:
        scheme = _SCHEME.match(text)
        if scheme is None or len(text) > MAX_URI:
            raise ValueError(f"{text} is no address: it has to start with a scheme such as echo:")
        self.text = text
        self.scheme = scheme.group()
        found = list(_VARIABLE.finditer(text))
        self.variables = tuple(match[2] for match in found)
        self.rest = any(match[1] for match in found)
        """Whether the last variable takes slashes too."""
        self._check(found)
        self._pattern = re.compile("".join(_parts(text)))

    def _check(self, found: list[re.Match[str]]) -> None:
        if len(set(self.variables)) != len(self.variables):
            raise ValueError(f"{self.text} names a variable twice")
        if re.search(r"[{}]", _VARIABLE.sub("", self.text)):
            raise ValueError(f"{self.text} has braces that are no variable like {{name}} or {{+name}}")
        # With two in one segment the time to match would grow with the square of an address' length.
        if any(len(_VARIABLE.findall(segment)) > 1 for segment in self.text.split("/")):
            raise ValueError(f"{self.text} has two variables in one segment")
        if any(match[1] and match.end() != len(self.text) for match in found):
            raise ValueError(f"{self.text}: a variable like {{+name}} takes the rest and must come last")

    @property
    def shape(self) -> str:
        """The same for two templates that match the same addresses."""
        return _VARIABLE.sub(lambda match: f"{{{match[1]}}}", self.text)

    @property
    def order(self) -> tuple[bool, int, str]:
        """Sorts the more particular of two templates that match the same address first."""
        return self.rest, -len(_VARIABLE.sub("", self.text)), self.text

    def match(self, uri: str) -> dict[str, str] | None:
        """The values that `uri` has for the variables; None if it does not fit, or tries to lead elsewhere."""
        if len(uri) > MAX_URI:
            return None
        found = self._pattern.fullmatch(uri)
        if found is None:
            return None
        values: dict[str, str] = {}
        for name, raw in found.groupdict().items():
            value = _decoded(raw)
            if value is None:
                return None
            values[name] = value
        return values

    def expand(self, values: Mapping[str, str]) -> str:
        """The address that has these values."""
        return _VARIABLE.sub(lambda match: quote(values[match[2]], safe="/" if match[1] else ""), self.text)


def _parts(text: str) -> list[str]:
    parts: list[str] = []
    at = 0
    for match in _VARIABLE.finditer(text):
        parts += (re.escape(text[at : match.start()]), f"(?P<{match[2]}>{'.+' if match[1] else '[^/]+'})")
        at = match.end()
    return [*parts, re.escape(text[at:])]


def _decoded(raw: str) -> str | None:
    try:
        value = unquote(raw, errors="strict")
    except UnicodeDecodeError:
        return None
    if value.startswith("/") or "\\" in value or "\0" in value or ".." in value.split("/"):
        return None
    return value

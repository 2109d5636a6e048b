"""Brave Search: GET /web/search. Its limits come with every answer, and a refused key is a 422 with a code."""

from collections.abc import Mapping
from typing import Any, cast
from urllib.parse import urlencode

from rookery.core.errors import ValidationFailed
from rookery.domains.research.port import Engine, Fault, Hit, Request, Search, Window

MAX_WORDS = 50
_KEY_CODES = frozenset({"SUBSCRIPTION_TOKEN_INVALID", "SUBSCRIPTION_TOKEN_MISSING"})


class Brave:
    """The web search of Brave's API."""

    title = "Brave"
    url = "https://api.search.brave.com/res/v1"
    key_name = "BRAVE_SEARCH_API_KEY"

    def request(self, url: str, key: str, search: Search) -> Request:
        if len(search.query.split()) > MAX_WORDS:
            raise ValidationFailed(f"Brave takes at most {MAX_WORDS} words", hint="ask for less at once")
        given = {"q": search.query, "count": str(search.count)}
        if search.freshness is not None:
            given["freshness"] = search.freshness
        headers = {"accept": "application/json", "accept-encoding": "gzip", "x-subscription-token": key}
        return Request(f"{url}/web/search?{urlencode(given)}", headers)

    def hits(self, said: Any) -> list[Hit] | None:
        answer = _object(said)
        if "web" not in answer:
            # It leaves out what it found nothing for.
            return [] if answer.get("type") == "search" else None
        results = _object(answer["web"]).get("results")
        if not isinstance(results, list):
            return None
        return [
            Hit(found.get("title"), found.get("url"), found.get("description"), found.get("age"))
            for found in map(_object, cast("list[Any]", results))
        ]

    def fault(self, status: int, said: Any) -> Fault:
        error = _object(_object(said).get("error"))
        told = [str(error[name]) for name in ("code", "detail") if isinstance(error.get(name), str)]
        return Fault(": ".join(told), of_key=status == 401 or error.get("code") in _KEY_CODES)

    def windows(self, headers: Mapping[str, str]) -> list[Window]:
        """As in `X-RateLimit-Policy: 1;w=1, 15000;w=2592000`, `-Remaining: 1, 1000` and `-Reset: 1, 1419704`."""
        policies = headers.get("x-ratelimit-policy", "").split(",")
        remaining = headers.get("x-ratelimit-remaining", "").split(",")
        resets = headers.get("x-ratelimit-reset", "").split(",")
        found: list[Window] = []
        for policy, rest, reset in zip(policies, remaining, resets, strict=False):
            limit, _, length = policy.strip().partition(";w=")
            numbers = [_whole(text) for text in (limit, length, rest, reset)]
            if None not in numbers:
                found.append(Window(*cast("list[int]", numbers)))
        return found


def _object(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _whole(text: str) -> int | None:
    bare = text.strip()
    return int(bare) if bare.isascii() and bare.isdigit() and len(bare) < 12 else None


ENGINE: Engine = Brave()

"""What GitHub's answers say: the JSON in them, or the error that they are. Pure."""

import re
from typing import Any, cast

from rookery.core.errors import (
    ConfigurationError,
    Conflict,
    NotFound,
    PermissionDenied,
    RookeryError,
    ServiceUnavailable,
    ValidationFailed,
)
from rookery.outgoing.client import Answer

Json = dict[str, Any]
MAX_SAID = 400
MAX_LINE = 300
API_HINT = "is GITHUB_API_URL the address of the API? On GitHub Enterprise it is https://HOST/api/v3"
_PAGE = re.compile(r"[?&]page=([0-9]{1,9})(?![0-9])")


def checked(answer: Answer, what: str) -> Answer:
    """The answer if it is a good one; else the error that it is, about `what`, such as `issue 7 of acme/shop`."""
    if answer.ok:
        return answer
    raise failure(answer, what)


def failure(answer: Answer, what: str) -> RookeryError:
    """The error that an answer is."""
    status, said = answer.status, message(answer)
    if status == 401:
        return ConfigurationError("GitHub does not accept the token", hint="the owner has to renew GITHUB_TOKEN")
    if status in (403, 451):
        return PermissionDenied(f"GitHub refuses {what}: {said}", hint=_needed(answer), layer="github")
    if status == 404:
        return NotFound(f"GitHub has no {what} that this token may see", hint="check the name, and the token's rights")
    if status in (409, 410):
        return Conflict(f"GitHub cannot do it to {what} now: {said}", hint="look at its state first")
    if status in (400, 406, 413, 422):
        return ValidationFailed(f"GitHub does not take it for {what}: {said}", hint="change what it names")
    if 300 <= status < 400:
        return ServiceUnavailable(f"GitHub answered {status} for {what}", hint=API_HINT)
    return ServiceUnavailable(f"GitHub answered {status} for {what}: {said}", hint="try again later")


def message(answer: Answer) -> str:
    """What an error says for itself: its message, and which fields it is about."""
    body = answer.json()
    if not isinstance(body, dict):
        return "without a reason that could be read"
    told = cast(Json, body)
    parts = [line(told.get("message"))]
    for each in entries(told.get("errors"))[:5]:
        if isinstance(each, dict):
            fault = cast(Json, each)
            named = " ".join(line(fault.get(key)) for key in ("field", "code") if fault.get(key))
            parts.append(line(fault.get("message")) or named)
        else:
            parts.append(line(each))
    return "; ".join(part for part in parts if part)[:MAX_SAID] or "without a reason"


def is_taken(answer: Answer) -> bool:
    """Whether a pull request was refused because there is one for the branch already."""
    return answer.status == 422 and "already exists" in message(answer)


def an_object(answer: Answer) -> Json:
    """The JSON object of a good answer."""
    body = answer.json()
    if not isinstance(body, dict):
        raise _unreadable(answer)
    return cast(Json, body)


def a_post(answer: Answer) -> Json:
    """The JSON object of a good answer that says where the thing is that it tells of."""
    made = an_object(answer)
    if not line(made.get("html_url")):
        raise _unreadable(answer)
    return made


def a_list(answer: Answer) -> list[Json]:
    """The objects of the JSON list that a good answer is."""
    body = answer.json()
    if not isinstance(body, list):
        raise _unreadable(answer)
    return [cast(Json, each) for each in cast("list[Any]", body) if isinstance(each, dict)]


def _unreadable(answer: Answer) -> ServiceUnavailable:
    kind = line(answer.headers.get("content-type")).partition(";")[0] or "something"
    return ServiceUnavailable(f"GitHub answered with {kind} that is not the expected JSON", hint=API_HINT)


def has_next(answer: Answer) -> bool:
    """Whether there is a page after this one."""
    return _link(answer, "next") is not None


def last_page(answer: Answer) -> int:
    """The number of the last page; 1 if none is named."""
    found = _PAGE.search(_link(answer, "last") or "")
    return int(found[1]) if found else 1


def _link(answer: Answer, rel: str) -> str | None:
    """The address that the header `Link` has for a page, as in `<https://…?page=2>; rel="next"`."""
    for each in answer.headers.get("link", "").split("<")[1:]:
        address, ended, about = each.partition(">")
        if ended and (f'rel="{rel}"' in about or f"rel={rel}" in about):
            return address
    return None


def line(value: Any, longest: int = MAX_LINE) -> str:
    """A text of theirs as one line of ours; what is no text is empty."""
    if not isinstance(value, str):
        return ""
    clean = "".join(sign if sign.isprintable() else " " for sign in value[: longest * 4])
    return " ".join(clean.split())[:longest]


def inside(value: Any, *path: str) -> Any:
    """What is at a place in the JSON; None if there is no such place."""
    found = value
    for step in path:
        found = cast(Json, found).get(step) if isinstance(found, dict) else None
    return found


def entries(value: Any) -> list[Any]:
    """The entries of a list; of what is none, none."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def number(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _needed(answer: Answer) -> str:
    """What the token would have to be allowed, where GitHub says so."""
    for header in ("x-accepted-github-permissions", "x-accepted-oauth-scopes"):
        wanted = line(answer.headers.get(header))
        if wanted:
            return f"the token needs {wanted}"
    return "the token may not do this"

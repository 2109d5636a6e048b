"""Answers in comments on the issue that was opened for an ask, by the owner's login and nobody else's."""

import json
import time
from collections.abc import Mapping
from typing import Any, cast
from urllib.parse import quote

from rookery.core.errors import ServiceUnavailable
from rookery.domains.owner.channel_frames import markdown_fence
from rookery.domains.owner.channel_http import GITHUB as FIT
from rookery.domains.owner.channel_http import check_answer, github_address, github_headers
from rookery.domains.owner.outside_heard import Config, Heard, Listener, Said, at, whole
from rookery.outgoing.client import Answer, GuardedClient

POLL_S = 15.0
MOST_PAGES = 5
PAGE = 100
LONGEST_S = 900.0
DAY_S = 86_400
SIGN = "<!-- rookery"
"""In every comment of ours, and of agents who use our tools: the token may be the owner's, and then so are those."""
MARK = f"{SIGN} -->"


async def hear(client: GuardedClient, config: Config, cursor: str | None) -> Heard:
    """What the owner commented since."""
    known = _known(cursor)
    comments: list[Any] = []
    etag: str | None = None
    for page in range(1, MOST_PAGES + 1):
        answer = await _comments(client, config, known, page)
        if answer.status == 304:
            return Heard(cursor=cursor, again_s=POLL_S)
        wait_s = _limited_s(answer)
        if wait_s is not None:
            return Heard(cursor=cursor, again_s=wait_s)
        check_answer("github", answer)
        found = answer.json()
        if not isinstance(found, list):
            raise ServiceUnavailable("github answered what cannot be read")
        etag = answer.headers.get("etag") if page == 1 else etag
        comments += cast("list[Any]", found)
        if len(cast("list[Any]", found)) < PAGE:
            break
    return _heard(config, comments, known, etag)


async def _comments(client: GuardedClient, config: Config, known: dict[str, Any], page: int) -> Answer:
    headers = github_headers(config)
    if page == 1 and known["etag"]:
        headers["if-none-match"] = known["etag"]
    since = quote(known["since"], safe="")
    query = f"sort=updated&direction=asc&since={since}&per_page={PAGE}&page={page}"
    return await client.request("GET", f"{github_address(config)}/comments?{query}", headers=headers)


def _limited_s(answer: Answer) -> float | None:
    """How long to wait if there were too many requests; None if not."""
    headers = answer.headers
    if answer.status not in (403, 429) or not (
        answer.status == 429 or "retry-after" in headers or headers.get("x-ratelimit-remaining") == "0"
    ):
        return None
    after, reset = headers.get("retry-after", ""), headers.get("x-ratelimit-reset", "")
    wait_s = float(after) if after.isdigit() else float(reset) - time.time() if reset.isdigit() else 60.0
    return min(max(POLL_S, wait_s), LONGEST_S)


def _heard(config: Config, comments: list[Any], known: dict[str, Any], etag: str | None) -> Heard:
    said: list[Said] = []
    last, since = known["id"], known["since"]
    numbered = [each for each in comments if whole(at(each, "id")) is not None]
    # By number, since an old comment that was changed stands behind newer ones.
    for comment in sorted(numbered, key=lambda each: each["id"]):
        changed = at(comment, "updated_at")
        if isinstance(changed, str) and len(changed) <= 40 and changed.isascii():
            since = max(since, changed)
        if comment["id"] <= last:
            continue
        last = comment["id"]
        one = _said(config, comment, _cursor(known["since"], last, None))
        if one is not None:
            said.append(one)
    kept = etag if since == known["since"] and etag is not None and len(etag) <= 200 else None
    return Heard(said=said, cursor=_cursor(since, last, kept), again_s=POLL_S)


def _said(config: Config, comment: Any, cursor: str) -> Said | None:
    author, body, address = at(comment, "user", "login"), at(comment, "body"), at(comment, "html_url")
    if not isinstance(author, str) or author.lower() != config["login"].lower():
        return None
    if not isinstance(body, str) or not isinstance(address, str):
        return None
    own = "\n".join(line for line in body.splitlines() if not line.lstrip().startswith(">")).strip()
    if SIGN in body or not own:
        return None
    issue = address.partition("#")[0]
    number = issue.rpartition("/")[2]
    if not number.isdigit():
        return None
    return Said(text=own, ref=issue, cursor=cursor, back={"number": int(number)})


async def reply(client: GuardedClient, config: Config, text: str, back: Mapping[str, Any]) -> None:
    """Tell it in a comment; an issue whose question is settled is closed."""
    address, headers = f"{github_address(config)}/{back['number']}", github_headers(config)
    sent = {"body": f"{markdown_fence(text)}\n\n{MARK}"}
    check_answer("github", await client.request("POST", f"{address}/comments", json=sent, headers=headers))
    if back.get("settled"):
        closed = {"state": "closed", "state_reason": "completed"}
        check_answer("github", await client.request("PATCH", address, json=closed, headers=headers))


def source(config: Config) -> str:
    """The repository."""
    return f"github:{config['repo'].lower()}"


def _cursor(since: str, last: int, etag: str | None) -> str:
    return json.dumps({"since": since, "id": last, "etag": etag})


def _known(cursor: str | None) -> dict[str, Any]:
    if cursor is not None:
        return json.loads(cursor)
    yesterday = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - DAY_S))
    return {"since": yesterday, "id": 0, "etag": None}


GITHUB = Listener(hear=hear, reply=reply, source=source, fit=FIT)

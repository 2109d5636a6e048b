"""Asks GitHub: within the limits that it tells, of no other host, and what it has answered before only once."""

import asyncio
import contextlib
import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any, TypeVar
from urllib.parse import urlencode, urljoin, urlsplit

from rookery.core.context import Context
from rookery.core.errors import Conflict, RookeryError, ServiceUnavailable, TimedOut, ValidationFailed
from rookery.domains.github.allowed import check_allowed
from rookery.domains.github.answer_store import MAX_BODY, Answers, Kept
from rookery.domains.github.answers import API_HINT, Json, a_list, checked, has_next, inside, line
from rookery.domains.github.credentials import Credential, credential_of
from rookery.domains.github.limits import Limit, limit_reached, limit_told
from rookery.outgoing.client import Answer, GuardedClient
from rookery.outgoing.rate_limits import sit_out, used_up
from rookery.settings import Settings

T = TypeVar("T")
Begins = Callable[[], None]
JSON = "application/vnd.github+json"
DIFF = "application/vnd.github.diff"
VERSION = "2022-11-28"
MAX_ANSWER = 8 * 1024 * 1024
REQUEST_S = 20.0
TRIES = 3
BACKOFF_S = 0.25
MAX_MOVES = 3
PAGE = 100
MAX_PAGES = 20
MAX_PAGED = 16 * 1024 * 1024
_REDIRECTS = frozenset({301, 302, 307, 308})
_SAFE = frozenset({"GET", "PUT", "DELETE"})
"""What may be sent again when it is not known whether it arrived: done twice is done once."""


class GitHub:
    """GitHub as one call sees it. Every method raises one of `core/errors.py`."""

    def __init__(self, ctx: Context, *, account: bool = False) -> None:
        """`account`: for what only a person's account can do."""
        settings: Settings = ctx.platform.facts["settings"]
        self.ctx = ctx
        self.allow = settings.github_allow
        self._api = settings.github_api_url
        self._credential: Credential = credential_of(settings, account=account)
        self._client = _client_for(settings)
        self._name = _digest(self._api, self._credential.name)

    def repository(self, repo: str) -> str:
        """The path of a repository, which has to be one of those that the owner allows."""
        check_allowed(self.allow, repo)
        return f"/repos/{repo}"

    def key(self, *parts: str) -> str:
        """A name for something that this tenant may see with this credential, and nobody else by it."""
        return _digest(self.ctx.actor.tenant, self._name, *parts)

    async def get(self, path: str, query: Mapping[str, Any] | None = None, *, accept: str = JSON) -> Answer:
        """The answer to a question, good or bad. One that has not changed since is not sent again."""
        url = self._url(path, query)
        key, tenant = _digest(self._name, accept, url), self.ctx.actor.tenant
        known = await self.ctx.read(lambda tx: Answers(tx, tenant).look(key))
        headers = {"accept": accept} | ({} if known is None else {"if-none-match": known.etag})
        answer = await self._send("GET", url, headers=headers)
        for _ in range(MAX_MOVES):
            if answer.status not in _REDIRECTS or not answer.headers.get("location"):
                break
            url = self._moved_to(answer, path)
            answer = await self._send("GET", url, headers=headers)
        if answer.status == 304 and known is not None:
            if known.stale:
                await self._write(lambda answers: answers.touch(key))
            return Answer(200, {"link": known.link, "content-type": known.kind}, known.body)
        etag = answer.headers.get("etag", "")
        if answer.status == 200 and etag and len(answer.body) <= MAX_BODY:
            kind = answer.headers.get("content-type", "")
            kept = Kept(etag, answer.headers.get("link", ""), kind, answer.body)
            await self._write(lambda answers: answers.keep(key, kept))
        return answer

    async def change(
        self, method: str, path: str, sent: Any = None, *, again: bool = False, begins: Begins | None = None
    ) -> Answer:
        """The answer to a change. `again`: it may be repeated although it is neither PUT nor DELETE.

        `begins` is told each time that it is about to leave: an error before that means that nothing was sent. A
        redirect is an error here: whoever gave the name did not mean what stands there now.
        """
        headers = {"accept": JSON}
        safe = again or method in _SAFE
        answer = await self._send(method, self._url(path), headers=headers, sent=sent, safe=safe, begins=begins)
        if answer.status in _REDIRECTS:
            raise await self._moved(path)
        return answer

    async def pages(self, path: str, query: Mapping[str, Any], what: str) -> tuple[list[Json], bool]:
        """The objects of a list up to a limit of pages and of bytes, and whether these are all."""
        found: list[Json] = []
        size = 0
        for page in range(1, MAX_PAGES + 1):
            answer = checked(await self.get(path, {**query, "per_page": PAGE, "page": page}), what)
            found += a_list(answer)
            size += len(answer.body)
            if not has_next(answer):
                return found, True
            if size > MAX_PAGED:
                break
        return found, False

    async def _send(
        self, method: str, url: str, *, headers: Mapping[str, str], sent: Any = None, safe: bool = True,
        begins: Begins | None = None,
    ) -> Answer:  # fmt: skip
        """One request, as often as it takes: after a limit that was sat out, and after a fault if that is `safe`."""
        await self._obey()
        left, renewed = TRIES, False
        while True:
            left -= 1
            try:
                answer = await self._once(method, url, headers, sent, begins)
            except (ServiceUnavailable, TimedOut):
                if not (safe and left > 0):
                    raise
                await self._pause(left)
                continue
            limit = limit_told(answer)
            if limit is not None:
                await self._sit_out(limit, last=left <= 0)
            elif answer.status == 401 and not renewed and self._credential.refused():
                # A token that ended is nobody's fault, and takes no try.
                renewed, left = True, left + 1
            elif answer.status >= 500 and safe and left > 0:
                await self._pause(left)
            else:
                return answer

    async def _once(
        self, method: str, url: str, headers: Mapping[str, str], sent: Any, begins: Begins | None
    ) -> Answer:
        authorization = await self._credential.authorization(self._ask)
        if begins is not None:
            begins()
        answer = await self._request(method, url, {**headers, "authorization": authorization}, sent)
        spent = limit_reached(answer) if answer.status < 400 else None
        if spent is not None:
            await self._hold_back(spent)
        return answer

    async def _ask(self, method: str, path: str, authorization: str) -> Answer:
        """For the token of an App, which is as limited as anything else."""
        headers = {"accept": JSON, "authorization": authorization}
        left = TRIES
        while True:
            left -= 1
            answer = await self._request(method, self._url(path), headers, None)
            limit = limit_told(answer)
            if limit is None:
                return answer
            await self._sit_out(limit, last=left <= 0)

    async def _request(self, method: str, url: str, headers: Mapping[str, str], sent: Any) -> Answer:
        self.ctx.check()
        try:
            return await self._client.request(
                method,
                url,
                json=sent,
                headers={**headers, "x-github-api-version": VERSION},
                timeout_s=min(REQUEST_S, self.ctx.remaining_s),
                max_bytes=MAX_ANSWER,
                follow=False,
            )
        except (ServiceUnavailable, TimedOut, ValidationFailed) as error:
            raise _of_github(error) from None

    async def _obey(self) -> None:
        """Ask nothing that GitHub has said it will not answer yet, to whichever of our servers."""
        tenant = self.ctx.actor.tenant
        held = await self.ctx.read(lambda tx: Answers(tx, tenant).held_back(self._name))
        if held is not None:
            limit = Limit(*held)
            await sit_out(self.ctx, limit.title, limit.wait_s)

    async def _sit_out(self, limit: Limit, *, last: bool) -> None:
        """Note a limit for all, and wait for it unless that was the last try."""
        await self._hold_back(limit)
        if last:
            raise used_up(limit.title, limit.wait_s)
        await sit_out(self.ctx, limit.title, limit.wait_s)

    async def _hold_back(self, limit: Limit) -> None:
        # What was answered stays answered: a limit that could not be noted is told by GitHub once more.
        with contextlib.suppress(RookeryError):
            await self._write(lambda answers: answers.hold_back(self._name, limit.kind, limit.wait_s))

    async def _write(self, work: Callable[[Answers], T]) -> T:
        tenant = self.ctx.actor.tenant
        return await self.ctx.write(lambda tx: work(Answers(tx, tenant)))

    async def _pause(self, left: int) -> None:
        await asyncio.sleep(BACKOFF_S * 2 ** (TRIES - 1 - left))

    def _url(self, path: str, query: Mapping[str, Any] | None = None) -> str:
        given = {name: value for name, value in (query or {}).items() if value is not None}
        return f"{self._api}{path}{'?' if given else ''}{urlencode(given)}"

    def _moved_to(self, answer: Answer, path: str) -> str:
        """Where a question is answered instead: at the same host, and where the owner does not care whose it is."""
        here = urlsplit(self._api)
        try:
            there = urlsplit(urljoin(self._api, answer.headers["location"]))
        except ValueError:
            there = urlsplit("")
        if (there.scheme, there.netloc) != (here.scheme, here.netloc):
            raise ValidationFailed(
                f"GitHub redirects {line(path)} to another host, which is not followed", hint=API_HINT
            )
        if self.allow:
            raise Conflict(f"{line(path)} has moved on GitHub", hint="use its new name, if the owner allows that one")
        return there.geturl()

    async def _moved(self, path: str) -> RookeryError:
        """The error for a change of what has another name now."""
        parts = path.split("/")
        known = path.startswith("/repos/") and not self.allow
        answer = await self.get("/".join(parts[:4])) if known else None
        name = line(inside(answer.json(), "full_name")) if answer is not None and answer.ok else ""
        where = f" to {name}" if name else ""
        return Conflict(f"{line(path)} has moved on GitHub{where}", hint="nothing was changed; use its new name")


def _client_for(settings: Settings) -> GuardedClient:
    """The address that the owner set may be of this machine or its network; no other host is ever asked."""
    place = urlsplit(settings.github_api_url)
    if place.hostname == "api.github.com":
        return GuardedClient(settings.outgoing_allow)
    return GuardedClient((place.netloc,))


def _of_github(error: RookeryError) -> RookeryError:
    return type(error)(f"GitHub: {error.message}", hint=error.hint)


def _digest(*parts: str) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

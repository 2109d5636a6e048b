"""Posts what agents write: signed, and once, although neither they nor we can always know whether it arrived."""

import asyncio
import contextlib
import hashlib
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from rookery.core.context import Context
from rookery.core.errors import ConfigurationError, Conflict, RateLimited, RookeryError
from rookery.core.tool import ToolInput
from rookery.domains.github.answers import Json, a_post, checked, line, number
from rookery.domains.github.client import GitHub
from rookery.domains.github.post_store import Claim, Posts
from rookery.domains.github.signing import signature
from rookery.outgoing.client import Answer

T = TypeVar("T")
LOOKS_S = (0.5, 3.0)
"""So long before each look: what was cut off may still be at work over there, and lists may lag."""
SETTLE_S = 120.0
"""What did not show up for so long after the last try will not: GitHub ends a request after ten seconds, and what
stands before it on the way after a minute or so."""
HOLD_S = 10.0
TRIES = 2
DOUBT_HINT = "it may have been posted all the same: call again with the same input, which looks before it posts"
_FAILED = frozenset({500, 503})
"""GitHub itself says that it was not done. With 502 and 504 something on the way says that it got no answer."""
Find = Callable[[Callable[[Json], bool], int], Awaitable[Json | None]]
"""Looks for the entry of which the given test is true, among those since a time in milliseconds."""


@dataclass(frozen=True, slots=True)
class Posted:
    """Where a post is. `repeated`: an earlier call has posted it; `first`: no call before has told of it."""

    url: str
    number: int | None
    repeated: bool
    first: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Post:
    """What is to be posted: `body` goes, signed, into `sent`. `refused` may say more of an answer than its status."""

    path: str
    what: str
    sent: Json
    body: str
    find: Find
    refused: Callable[[Answer], Awaitable[None]] | None = None


class Posting:
    """One post on its way."""

    def __init__(self, github: GitHub, args: ToolInput, post: Post) -> None:
        self._github = github
        self._ctx = github.ctx
        self._post = post
        self._digest = digest_of(github.ctx, args)
        self._model: str | None = getattr(args, "model", None)
        self._doubtful: bool = False
        """It may have been posted, by this call or an earlier one."""
        self._untold: bool = False
        """This call has sent it and heard nothing that settles it: it may even be posted later."""
        self._failed: bool = False
        """GitHub said that the last try failed."""

    async def run(self) -> Posted:
        """Where it is. What was posted within the last minutes, or may have been before, is not posted again."""
        ctx, holder = self._ctx, self._ctx.request_id
        signed = await signature(ctx, self._model)
        claim = await self._write(lambda posts: posts.claim(self._digest, holder, ctx.remaining_s + HOLD_S))
        if claim.url is not None:
            return Posted(claim.url, claim.number, True, False)
        self._doubtful = claim.doubtful
        try:
            found = await self._left_behind(claim) if claim.doubtful else None
            made = found or await self._make(claim, signed)
            posted = Posted(line(made.get("html_url"), 2000), number(made.get("number")), found is not None, True)
            await self._write(lambda posts: posts.finish(claim, posted.url, posted.number))
            return posted
        except RookeryError as error:
            # If this cannot be noted either, the claim ends by itself, and whoever comes then has to look.
            with contextlib.suppress(RookeryError):
                await self._write(lambda posts: self._give_up(posts, claim))
            if self._untold or self._failed:
                raise type(error)(error.message, hint=DOUBT_HINT, layer=error.layer) from None
            raise

    def _give_up(self, posts: Posts, claim: Claim) -> None:
        if self._doubtful:
            posts.leave(claim, tried=self._untold)
        else:
            posts.withdraw(claim)

    async def _make(self, claim: Claim, signed: str) -> Json:
        """Send it, and once more if GitHub said that it failed and it does not show up.

        Where no answer came, or none that can be read, it may be at work over there: it is looked for and not repeated.
        """
        # First, where no open comment, code or fold of the body can hide it.
        body = f"{signed}\n{marker_of(claim)}\n\n{self._post.body}".rstrip()
        sent = {**self._post.sent, "body": body}
        left = TRIES
        while True:
            left -= 1
            try:
                return await self._send(sent)
            except RookeryError:
                found, absent = await self._look(claim) if self._doubtful else (None, True)
                if found is not None:
                    return found
                if not (self._failed and absent and left > 0):
                    raise

    async def _look(self, claim: Claim) -> tuple[Json | None, bool]:
        """What was posted all the same, or whether it is known not to be there."""
        absent = False
        for pause_s in LOOKS_S:
            await asyncio.sleep(pause_s)
            try:
                found = await self._find(claim)
            except RookeryError:
                absent = False
                continue
            if found is not None:
                return found, False
            absent = True
        return None, absent

    async def _left_behind(self, claim: Claim) -> Json | None:
        """What an earlier call may have posted; Conflict until it is known that nothing of it will come any more."""
        found = await self._find(claim)
        left_s = SETTLE_S - claim.quiet_s
        if found is not None or left_s <= 0:
            return found
        after = datetime.now(UTC) + timedelta(seconds=left_s)
        raise Conflict(
            "an earlier call has sent the same and got no answer; it has not shown up on GitHub, and still may",
            hint=f"call again with the same input after {after:%H:%M:%S} UTC (in {left_s:.0f} s): it is posted then, "
            "unless it has shown up",
        )

    async def _send(self, sent: Json) -> Json:
        """Post it. It is in doubt from when it leaves, unless GitHub refuses it."""
        before, self._failed = (self._doubtful, self._untold), False
        try:
            answer = await self._github.change("POST", self._post.path, sent, begins=self._begins)
        except (RateLimited, ConfigurationError, Conflict):
            # A limit, a credential or a redirect was in the way.
            self._doubtful, self._untold = before
            raise
        if answer.status in _FAILED:
            self._failed, self._untold = True, before[1]
        elif 400 <= answer.status < 500:
            self._doubtful, self._untold = before
            if self._post.refused is not None:
                await self._post.refused(answer)
        return a_post(checked(answer, self._post.what))

    def _begins(self) -> None:
        self._doubtful = self._untold = True

    async def _find(self, claim: Claim) -> Json | None:
        marker = marker_of(claim)
        return await self._post.find(lambda entry: marker in str(entry.get("body")), claim.begun_ms)

    async def _write(self, work: Callable[[Posts], T]) -> T:
        tenant = self._ctx.actor.tenant
        return await self._ctx.write(lambda tx: work(Posts(tx, tenant)))


def digest_of(ctx: Context, args: ToolInput) -> str:
    """What the same post of the same agent has in common, however it is spelled."""
    actor = ctx.actor
    given = args.model_dump(mode="json", exclude={"model"})
    who = [ctx.call.tool.name, actor.agent or actor.subject]
    return hashlib.sha256(json.dumps([who, given], sort_keys=True).encode()).hexdigest()


def marker_of(claim: Claim) -> str:
    """What readers of a page do not see, and we look for."""
    return f"<!-- rookery:{claim.marker} -->"

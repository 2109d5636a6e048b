"""Posts what agents write: signed, and once, although neither they nor we can always know whether it arrived."""

import asyncio
import contextlib
import hashlib
import json
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from rookery.core.context import Context
from rookery.core.errors import ConfigurationError, Conflict, RateLimited, RookeryError
from rookery.core.tool import ToolInput
from rookery.domains.github.answers import Json, an_object, checked, line, number
from rookery.domains.github.client import GitHub
from rookery.domains.github.post_store import Claim, Posts
from rookery.outgoing.client import Answer

LOOKS_S = (0.5, 3.0)
"""So long before each look: what was cut off may still be at work over there, and lists may lag."""
SETTLE_S = 10.0
"""What did not show up for so long after the last try will not."""
HOLD_S = 10.0
TRIES = 2
DOUBT_HINT = "it may have been posted all the same: call again with the same input, which looks before it posts"
_PLAIN = re.compile(r"[^\w .:/+-]")
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
        self._signed = signature(github.ctx, getattr(args, "model", None))
        self._doubtful = False
        self._failed = False

    async def run(self) -> Posted:
        """Where it is. What was posted within the last minutes, or may have been before, is not posted again."""
        ctx, holder = self._ctx, self._ctx.request_id
        claim = await self._write(lambda posts: posts.claim(self._digest, holder, ctx.remaining_s + HOLD_S))
        if claim.url is not None:
            return Posted(claim.url, claim.number, True, False)
        self._doubtful = claim.doubtful
        try:
            found = await self._left_behind(claim) if claim.doubtful else None
            made = found or await self._make(claim)
            self._doubtful = True
            posted = Posted(line(made.get("html_url"), 2000), number(made.get("number")), found is not None, True)
            await self._write(lambda posts: posts.finish(claim, posted.url, posted.number))
            return posted
        except RookeryError as error:
            # If this cannot be noted either, the claim ends by itself, and whoever comes then has to look.
            with contextlib.suppress(RookeryError):
                await self._write(lambda posts: posts.leave(claim) if self._doubtful else posts.withdraw(claim))
            if self._doubtful:
                raise type(error)(error.message, hint=DOUBT_HINT) from None
            raise

    async def _make(self, claim: Claim) -> Json:
        """Send it, and once more if GitHub said that it failed and it does not show up.

        Where no answer came, or none that can be read, it may be at work over there: it is looked for and not repeated.
        """
        # First, where no open comment, code or fold of the body can hide it.
        body = f"{self._signed}\n{marker_of(claim)}\n\n{self._post.body}".rstrip()
        sent = {**self._post.sent, "body": body}
        left = TRIES
        while True:
            left -= 1
            try:
                return await self._send(sent)
            except RookeryError:
                found = await self._look(claim) if self._doubtful else None
                if found is not None:
                    return found
                if not (self._failed and left > 0):
                    raise

    async def _look(self, claim: Claim) -> Json | None:
        for pause_s in LOOKS_S:
            await asyncio.sleep(pause_s)
            found = await self._find(claim)
            if found is not None:
                return found
        return None

    async def _left_behind(self, claim: Claim) -> Json | None:
        """What an earlier call may have posted, once that can be known."""
        found = await self._find(claim)
        left_s = SETTLE_S - claim.quiet_s
        if found is not None or left_s <= 0:
            return found
        self._ctx.progress(0, None, "waiting for an earlier try of the same post to show up")
        await asyncio.sleep(left_s)
        return await self._find(claim)

    async def _send(self, sent: Json) -> Json:
        """Post it. It is in doubt from here on, unless GitHub refuses it."""
        before, self._doubtful, self._failed = self._doubtful, True, False
        try:
            answer = await self._github.change("POST", self._post.path, sent)
        except (RateLimited, ConfigurationError, Conflict):
            # A limit, a credential or a redirect was in the way.
            self._doubtful = before
            raise
        self._failed = answer.status >= 500
        if 400 <= answer.status < 500:
            self._doubtful = before
            if self._post.refused is not None:
                await self._post.refused(answer)
        return an_object(checked(answer, self._post.what))

    async def _find(self, claim: Claim) -> Json | None:
        marker = marker_of(claim)
        return await self._post.find(lambda entry: marker in str(entry.get("body")), claim.begun_ms)

    async def _write(self, work: Callable[[Posts], Any]) -> Any:
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


def signature(ctx: Context, model: str | None) -> str:
    """The line that says which agent wrote it, and with which model; where that is not told, with which client."""
    actor, client = ctx.actor, ctx.client
    who = _plain(actor.agent_name or actor.role or actor.subject)
    how = _plain(model or f"{client.name} {client.version}")
    return f"*Posted by {who}{f' ({how})' if how else ''} through Rookery.*"


def _plain(text: str) -> str:
    """Without anything that would be markup, or call somebody."""
    return " ".join(_PLAIN.sub("", text).split())[:80]

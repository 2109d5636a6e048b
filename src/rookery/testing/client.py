"""One MCP client of a bench: calls, reads, asks for completions, and remembers what it was told and asked."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, TypeVar

import anyio
import mcp_types as types
from mcp import Client, MCPError
from mcp.client import ClientRequestContext, IncomingMessage, Transport

from rookery.testing.answers import (
    Answer,
    CallFailed,
    Contents,
    Prompted,
    ToolFailed,
    from_protocol,
    to_answer,
    to_contents,
    to_prompted,
)
from rookery.testing.connection import Connection, Era
from rookery.testing.people import Asked, People, elicit_asked, fill_in, sample_asked, say

T = TypeVar("T")
MAX_PAGES = 1000
SETTLING = 8


class Progress(NamedTuple):
    """How far a call said it was."""

    done: float
    total: float | None
    message: str | None


class Log(NamedTuple):
    """A line that a handler logged to the client."""

    level: str
    text: Any
    logger: str | None


class BenchClient:
    """A session of the official SDK's client. `sdk` is that client itself, for whatever is not here."""

    def __init__(
        self,
        transport: Transport,
        people: People,
        *,
        era: Era,
        log_level: types.LoggingLevel,
        timeout_s: float,
    ) -> None:
        self.era = era
        self.progress: list[Progress] = []
        self.logs: list[Log] = []
        self.asked: list[Asked] = []
        self.notifications: list[types.ServerNotification] = []
        """Everything that the server sent on its own account, oldest first."""
        self._people = people
        self._log_level: types.LoggingLevel = log_level
        self.sdk = Client(
            transport,
            # `auto` asks the server what it speaks, and finds the newest revision.
            mode="legacy" if era == "2025-11-25" else "auto",
            elicitation_callback=None if people.person is None else self._fill_in,
            sampling_callback=None if people.model is None else self._say,
            list_roots_callback=None if people.roots is None else self._list_roots,
            logging_callback=self._logged,
            log_level=log_level,
            message_handler=self._heard,
            client_info=types.Implementation(name="rookery-bench", version="1"),
            read_timeout_seconds=timeout_s,
            cache=None,
        )
        self._connection = Connection(self.sdk)

    async def open(self) -> None:
        await self._connection.open()
        if self.sdk.protocol_version != self.era:
            raise RuntimeError(f"the server chose {self.sdk.protocol_version} instead of {self.era}")
        if self.era == "2025-11-25" and self.sdk.server_capabilities.logging is not None:
            level = types.SetLevelRequest(params=types.SetLevelRequestParams(level=self._log_level))
            await self.sdk.session.send_request(level, types.EmptyResult)

    async def close(self) -> None:
        """End the session. The bench does this for every client that is left."""
        await self._connection.close()

    @property
    def instructions(self) -> str:
        """What the server told the agent about itself."""
        return self.sdk.instructions or ""

    async def call(self, name: str, /, **arguments: Any) -> Answer:
        """Call a tool. Raises ToolFailed if it fails, is refused or is not there."""
        try:
            result = await self.sdk.call_tool(name, arguments, progress_callback=self._progressed)
        except MCPError as error:
            raise from_protocol(error, ToolFailed) from None
        await self._settle()
        return to_answer(result)

    async def read(self, uri: str) -> Contents:
        """Read a resource. Raises CallFailed if it is not there for this client."""
        return to_contents(await self._asking(self.sdk.read_resource(uri)))

    async def prompt(self, name: str, /, **arguments: str) -> Prompted:
        """Get a prompt. Raises CallFailed if it is not there for this client."""
        return to_prompted(await self._asking(self.sdk.get_prompt(name, arguments)))

    async def complete(self, of: str, argument: str, typed: str = "", /, **others: str) -> list[str]:
        """What the server offers for an argument of a prompt, or of a template such as `echo://{message}`.

        `typed` is what is there already, `others` are the arguments that were given before.
        """
        ref = (
            types.ResourceTemplateReference(type="ref/resource", uri=of)
            if "://" in of
            else types.PromptReference(type="ref/prompt", name=of)
        )
        asking = self.sdk.complete(ref, {"name": argument, "value": typed}, context_arguments=others or None)
        return list((await self._asking(asking)).completion.values)

    async def tools(self) -> dict[str, types.Tool]:
        """The listed tools by name."""
        return {tool.name: tool for tool in await self._all(self.sdk.list_tools, lambda page: page.tools)}

    async def resources(self) -> dict[str, types.Resource]:
        """The listed resources by address."""
        listed = await self._all(self.sdk.list_resources, lambda page: page.resources)
        return {resource.uri: resource for resource in listed}

    async def templates(self) -> dict[str, types.ResourceTemplate]:
        """The listed resource templates by template."""
        listed = await self._all(self.sdk.list_resource_templates, lambda page: page.resource_templates)
        return {template.uri_template: template for template in listed}

    async def prompts(self) -> dict[str, types.Prompt]:
        """The listed prompts by name."""
        return {prompt.name: prompt for prompt in await self._all(self.sdk.list_prompts, lambda page: page.prompts)}

    async def until(self, method: str, timeout_s: float = 10) -> types.ServerNotification:
        """The first notification of that method, such as `notifications/tools/list_changed`; waits for it.

        A client of 2026-07-28 hears only what it listens to: `async with client.sdk.listen(…)`.
        """
        with anyio.fail_after(timeout_s):
            while True:
                for notification in self.notifications:
                    if notification.method == method:
                        return notification
                await anyio.sleep(0.01)

    async def _all(self, fetch: Callable[..., Awaitable[Any]], items: Callable[[Any], list[T]]) -> list[T]:
        found: list[T] = []
        cursor: str | None = None
        for _ in range(MAX_PAGES):
            page = await self._asking(fetch(cursor=cursor))
            found += items(page)
            cursor = page.next_cursor
            if cursor is None:
                return found
        raise RuntimeError(f"the list has more than {MAX_PAGES} pages")

    async def _asking(self, asking: Awaitable[T]) -> T:
        try:
            answer = await asking
        except MCPError as error:
            raise from_protocol(error, CallFailed) from None
        await self._settle()
        return answer

    async def _settle(self) -> None:
        # What the server said before its answer is delivered by tasks that have yet to run.
        for _ in range(SETTLING):
            await asyncio.sleep(0)

    async def _progressed(self, progress: float, total: float | None, message: str | None) -> None:
        self.progress.append(Progress(progress, total, message))

    async def _logged(self, params: types.LoggingMessageNotificationParams) -> None:
        self.logs.append(Log(params.level, params.data, params.logger))

    async def _heard(self, message: IncomingMessage) -> None:
        if isinstance(message, Exception):
            raise message
        self.notifications.append(message)

    async def _fill_in(self, context: ClientRequestContext, params: types.ElicitRequestParams) -> types.ElicitResult:
        assert self._people.person is not None
        self.asked.append(elicit_asked(params))
        return await fill_in(self._people.person, self.asked[-1])

    async def _say(
        self, context: ClientRequestContext, params: types.CreateMessageRequestParams
    ) -> types.CreateMessageResult:
        assert self._people.model is not None
        self.asked.append(sample_asked(params))
        return await say(self._people.model, self.asked[-1])

    async def _list_roots(self, context: ClientRequestContext) -> types.ListRootsResult:
        self.asked.append(Asked("roots"))
        return types.ListRootsResult(
            roots=[types.Root.model_validate({"uri": uri}) for uri in self._people.roots or ()]
        )

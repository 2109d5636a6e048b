"""The way back from a running call to its MCP client, in both protocol eras."""

import asyncio
import warnings
from collections.abc import Coroutine
from typing import Any, cast

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel

from rookery.core.errors import RookeryError, ServiceUnavailable

MAX_WAITING = 256

warnings.filterwarnings("ignore", message=".*deprecated as of 2026-07-28.*")


class InputRequired(RookeryError):
    """Not a failure: the client has to answer first and then call again. Carries what it is asked."""

    code = "INPUT_REQUIRED"

    def __init__(self, key: str, request: types.ElicitRequest | types.CreateMessageRequest) -> None:
        super().__init__(f"the client has to answer {key} first")
        self.key = key
        self.request = request


class AnyResult(BaseModel):
    """Takes whatever a client answers to a request of our own making."""

    model_config = {"extra": "allow"}


class ClientDoor:
    """Talks to the client of one request. Made for each call; `flush` before the answer goes out."""

    __slots__ = ("_asked", "_ctx", "_loop", "_params", "_tasks", "_told")

    def __init__(self, ctx: ServerRequestContext[Any, Any], params: types.CallToolRequestParams) -> None:
        self._ctx = ctx
        self._params = params
        self._loop = asyncio.get_running_loop()
        self._tasks: list[asyncio.Task[None]] = []
        self._told = 0
        self._asked = 0

    def tell(self, method: str, params: dict[str, Any]) -> None:
        """Progress or status, from any thread. Only the loop may send: a send from elsewhere is lost silently."""
        self._told += 1
        self._loop.call_soon_threadsafe(self._start, method, params)

    def _start(self, method: str, params: dict[str, Any]) -> None:
        if len(self._tasks) >= MAX_WAITING:
            self._tasks = [task for task in self._tasks if not task.done()]
            if len(self._tasks) >= MAX_WAITING:
                return  # to a client that does not read, news of this kind would only pile up
        session = self._ctx.session
        sending: Coroutine[Any, Any, None]
        if method == "progress":
            sending = session.report_progress(params["progress"], params["total"], params["message"])
        else:
            sending = session.send_log_message(  # pyright: ignore[reportDeprecated]
                "info", params["message"], logger="status", related_request_id=self._ctx.request_id
            )
        self._tasks.append(asyncio.ensure_future(sending))

    async def flush(self) -> None:
        """Wait until everything told so far is on its way."""
        if self._told:
            # What a worker thread told last may still be queued for this loop.
            await asyncio.sleep(0)
            await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def _modern(self) -> bool:
        return self._ctx.protocol_version in MODERN_PROTOCOL_VERSIONS

    def _answer(self, request: types.ElicitRequest | types.CreateMessageRequest, kind: type[Any]) -> Any:
        """What the client answered to the question of this position, or ask it by ending the call here."""
        self._asked += 1
        key = f"input_{self._asked}"
        answer = (self._params.input_responses or {}).get(key)
        if isinstance(answer, kind):
            return answer
        raise InputRequired(key, request)

    async def elicit(self, message: str, schema: dict[str, Any]) -> dict[str, Any] | None:
        capabilities = self._ctx.session.client_capabilities
        if capabilities is None or capabilities.elicitation is None:
            raise ServiceUnavailable("this client cannot be asked questions", hint="use ask_owner, or decide yourself")
        if self._modern:
            params = types.ElicitRequestFormParams(message=message, requested_schema=schema)
            answer = cast(types.ElicitResult, self._answer(types.ElicitRequest(params=params), types.ElicitResult))
        else:
            answer = await self._ask(
                self._ctx.session.elicit_form(message, schema, related_request_id=self._ctx.request_id)
            )
        return cast("dict[str, Any] | None", answer.content) if answer.action == "accept" else None

    async def sample(self, prompt: str, *, max_tokens: int, system: str | None) -> str:
        capabilities = self._ctx.session.client_capabilities
        if capabilities is None or capabilities.sampling is None:
            raise ServiceUnavailable("this client offers no model to sample from", hint="use a client that does")
        messages = [types.SamplingMessage(role="user", content=types.TextContent(type="text", text=prompt))]
        if self._modern:
            params = types.CreateMessageRequestParams(messages=messages, max_tokens=max_tokens, system_prompt=system)
            answer = self._answer(types.CreateMessageRequest(params=params), types.CreateMessageResult)
        else:
            answer = await self._ask(
                self._ctx.session.create_message(  # pyright: ignore[reportDeprecated]
                    messages=messages,
                    max_tokens=max_tokens,
                    system_prompt=system,
                    related_request_id=self._ctx.request_id,
                )
            )
        content = answer.content
        return content.text if isinstance(content, types.TextContent) else ""

    async def send_notification(self, method: str, params: dict[str, Any]) -> None:
        notification = types.Notification(method=method, params=params)
        await self._ctx.session.send_notification(cast(Any, notification), related_request_id=self._ctx.request_id)

    async def send_request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        if self._modern:
            raise ServiceUnavailable(
                f"{method} cannot be sent to a client of this protocol revision", hint="use elicit"
            )
        request = types.Request(method=method, params=params)
        answer = await self._ask(self._ctx.session.send_request(cast(Any, request), AnyResult))
        return answer.model_dump(by_alias=True, mode="json")

    async def _ask(self, asking: Coroutine[Any, Any, Any]) -> Any:
        try:
            return await asking
        except MCPError as error:
            raise ServiceUnavailable(f"the client refused: {error.error.message}", hint="go on without it") from error

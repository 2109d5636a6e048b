"""The way back from a running call to its MCP client, in both protocol eras."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, cast

import mcp_types as types
from mcp.server.session import ServerSession
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from rookery.core.context import LOG_LEVELS, NOTHING_TO_DO, LogLevel
from rookery.core.errors import ServiceUnavailable
from rookery.core.questions import Answer, ClientInfo, Question, missing, question_keys
from rookery.server.asking import AnyResult, Ctx, Rounds, answered, ask_now

MAX_WAITING = 256

# Called by its name it warns every time, and to whoever tests a plugin a warning may be an error.
_send_log: Callable[..., Coroutine[Any, Any, None]] = inspect.unwrap(
    ServerSession.send_log_message  # pyright: ignore[reportDeprecated]
)


def _takes_forms(elicitation: types.ElicitationCapability | None) -> bool:
    """Whether the client's person can fill in forms. Who declares no mode has this one."""
    return elicitation is not None and (elicitation.form is not None or elicitation.url is None)


class ClientDoor:
    """Talks to the client of one request. Made for each call; `flush` before the answer goes out."""

    __slots__ = ("_asked", "_ctx", "_loop", "_params", "_rounds", "_tasks", "_told")

    def __init__(self, ctx: Ctx, params: types.InputResponseRequestParams) -> None:
        self._ctx = ctx
        self._params = params
        self._loop = asyncio.get_running_loop()
        self._tasks: list[asyncio.Task[None]] = []
        self._told = 0
        self._asked = 0
        self._rounds: Rounds | None = None

    @property
    def modern(self) -> bool:
        """Whether the client speaks a revision in which the server asks by its answers."""
        return self._ctx.protocol_version in MODERN_PROTOCOL_VERSIONS

    @property
    def client(self) -> ClientInfo:
        session = self._ctx.session
        info = session.client_params.client_info if session.client_params is not None else None
        can = session.client_capabilities
        return ClientInfo(
            name=info.name if info is not None else "",
            version=info.version if info is not None else "",
            protocol=self._ctx.protocol_version,
            elicitation=can is not None and _takes_forms(can.elicitation),
            sampling=can is not None and can.sampling is not None,
            roots=can is not None and can.roots is not None,
        )

    def tell(self, method: str, params: dict[str, Any]) -> None:
        """Progress, status or a line of log, from any thread. Only the loop may send: elsewhere it is lost silently."""
        self._told += 1
        self._loop.call_soon_threadsafe(self._start, method, params)

    def _start(self, method: str, params: dict[str, Any]) -> None:
        if len(self._tasks) >= MAX_WAITING:
            self._tasks = [task for task in self._tasks if not task.done()]
            if len(self._tasks) >= MAX_WAITING:
                return  # to a client that does not read, news of this kind would only pile up
        sending: Coroutine[Any, Any, None] | None
        if method == "progress":
            sending = self._ctx.session.report_progress(params["progress"], params["total"], params["message"])
        else:
            sending = self._log(params.get("level", "info"), params["message"], params.get("logger", "status"))
        if sending is not None:
            self._tasks.append(asyncio.ensure_future(sending))

    def _log(self, level: LogLevel, text: str, logger: str | None) -> Coroutine[Any, Any, None] | None:
        """The line on its way, or None if the client wants none of this level. The SDK knows who has asked for none."""
        if not self.modern and LOG_LEVELS.index(level) < self._ctx.lifespan_context.log_level:
            return None
        return _send_log(self._ctx.session, level, text, logger=logger, related_request_id=self._ctx.request_id)

    async def flush(self) -> None:
        """Wait until everything told so far is on its way."""
        if self._told:
            # What a worker thread told last may still be queued for this loop.
            await asyncio.sleep(0)
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def ask(self, questions: Sequence[Question]) -> Sequence[Answer]:
        can = self.client
        for question in questions:
            if not getattr(can, question.capability):
                raise missing(question.capability)
        if not self.modern:
            return await ask_now(self._ctx, questions)
        if self._rounds is None:
            self._rounds = Rounds(self._params.input_responses, self._params.request_state)
        keys = question_keys(questions, self._asked)
        self._asked += len(questions)
        return self._rounds.ask(questions, keys)

    async def send_notification(self, method: str, params: dict[str, Any]) -> None:
        notification = types.Notification(method=method, params=params)
        await self._ctx.session.send_notification(cast(Any, notification), related_request_id=self._ctx.request_id)

    async def send_request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        if self.modern:
            raise ServiceUnavailable(
                f"{method} cannot be sent to a client of this protocol revision", hint="use elicit"
            )
        request = types.Request(method=method, params=params)
        answer = await answered(self._ctx.session.send_request(cast(Any, request), AnyResult))
        return answer.model_dump(by_alias=True, mode="json")

    def release(self) -> Awaitable[None]:
        close = self._ctx.close_sse_stream
        return NOTHING_TO_DO if close is None else asyncio.ensure_future(close())

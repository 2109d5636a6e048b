"""What the SDK asks us to do for each request. Imports the SDK: import this inside functions only."""

from collections.abc import AsyncGenerator, Generator
from contextlib import ExitStack, aclosing, contextmanager
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from a2a.server.context import ServerCallContext
from a2a.server.events.event_queue import Event
from a2a.server.request_handlers.request_handler import RequestHandler
from a2a.server.routes.common import DefaultServerCallContextBuilder
from a2a.server.routes.jsonrpc_dispatcher import JsonRpcDispatcher
from a2a.types.a2a_pb2 import (
    AgentCard,
    CancelTaskRequest,
    DeleteTaskPushNotificationConfigRequest,
    GetExtendedAgentCardRequest,
    GetTaskPushNotificationConfigRequest,
    GetTaskRequest,
    ListTaskPushNotificationConfigsRequest,
    ListTaskPushNotificationConfigsResponse,
    ListTasksRequest,
    ListTasksResponse,
    SendMessageRequest,
    SubscribeToTaskRequest,
    Task,
    TaskPushNotificationConfig,
)
from a2a.utils.errors import (
    A2AError,
    ContentTypeNotSupportedError,
    ExtendedAgentCardNotConfiguredError,
    InternalError,
    InvalidParamsError,
    PushNotificationNotSupportedError,
    TaskNotCancelableError,
    TaskNotFoundError,
    UnsupportedOperationError,
)
from a2a.utils.proto_utils import validate_proto_required_fields
from google.protobuf.json_format import MessageToDict
from starlette.requests import Request

from rookery.core.actor import Actor
from rookery.core.admission import storable
from rookery.core.errors import RookeryError
from rookery.db.tx import Tx
from rookery.domains.a2a import inbound
from rookery.domains.a2a.inbound import Incoming
from rookery.domains.a2a.store import OPEN, Row, Tasks
from rookery.server.a2a.following import Following
from rookery.server.a2a.wire import state_named, task_of, text_of, updates

if TYPE_CHECKING:
    from collections.abc import Callable

    from rookery.app import Platform

T = TypeVar("T")
BLOCKED_S = 600.0
"""So long a request waits for the end of its task; then it is told how far that is."""
PAGE, MOST = 50, 100
TAKEN = frozenset({"text/plain", "text/*", "*/*", "text"})
_NO_PUSH = "this server pushes nothing; stream, or look at the task"
_ERRORS: dict[int, type[A2AError]] = {400: InvalidParamsError, 404: TaskNotFoundError, 500: InternalError}


def make_dispatcher(platform: "Platform") -> JsonRpcDispatcher:
    """What answers JSON-RPC requests of A2A 1.0 and 0.3."""
    return JsonRpcDispatcher(
        request_handler=TaskHandler(platform), context_builder=_Contexts(), enable_v0_3_compat=True
    )


class _Contexts(DefaultServerCallContextBuilder):
    """Hands on who was let in, and not by which secret."""

    def build(self, request: Request) -> ServerCallContext:
        context = super().build(request)
        context.state["headers"] = {
            name: value for name, value in request.headers.items() if name.lower() not in ("authorization", "cookie")
        }
        context.state["http"] = request.state
        return context


class TaskHandler(RequestHandler):
    """The methods of the protocol. Every task is a job of the platform; this process keeps only who waits."""

    def __init__(self, platform: "Platform") -> None:
        self._platform = platform
        self._following = Following(platform.database)

    async def on_message_send(self, params: SendMessageRequest, context: ServerCallContext) -> Task:
        """The task, once it is over, unless the sender does not want to wait."""
        if params.configuration.return_immediately:
            return task_of(await self._submitted(params, context), _history(params.configuration))
        with self._waiting(context):
            row = await self._following.when_over(await self._submitted(params, context), BLOCKED_S)
        return task_of(row, _history(params.configuration))

    async def on_message_send_stream(
        self, params: SendMessageRequest, context: ServerCallContext
    ) -> AsyncGenerator[Event]:
        """The task, and everything that becomes of it."""
        with self._waiting(context):
            row = await self._submitted(params, context)
            async with aclosing(self._followed(row, _history(params.configuration))) as events:
                async for event in events:
                    yield event

    async def on_subscribe_to_task(
        self, params: SubscribeToTaskRequest, context: ServerCallContext
    ) -> AsyncGenerator[Event]:
        """The same for a task that was sent before and is not over."""
        with self._waiting(context):
            row = await self._found(params.id, context)
            if row.state not in OPEN:
                raise UnsupportedOperationError(f"the task is {row.state}")
            async with aclosing(self._followed(row, None)) as events:
                async for event in events:
                    yield event

    async def on_get_task(self, params: GetTaskRequest, context: ServerCallContext) -> Task:
        return task_of(await self._found(params.id, context), _history(params))

    async def on_cancel_task(self, params: CancelTaskRequest, context: ServerCallContext) -> Task:
        validate_proto_required_fields(params)
        try:
            return task_of(await inbound.give_up(self._platform.calls, _actor(context), params.id))
        except RookeryError as error:
            _refuse(context, error)

    async def on_list_tasks(self, params: ListTasksRequest, context: ServerCallContext) -> ListTasksResponse:
        """The sender's own tasks, the newest first."""
        limit = params.page_size if params.HasField("page_size") else PAGE
        state = state_named(params.status)
        if not 1 <= limit <= MOST:
            raise InvalidParamsError(f"pageSize: must be from 1 to {MOST}")
        if not storable(params.context_id + params.page_token):
            raise InvalidParamsError("a text contains a NUL character or half of a surrogate pair")
        if state is None:
            return ListTasksResponse(page_size=limit)
        try:
            await inbound.settle_overdue(self._platform.database, _actor(context))
        except RookeryError as error:
            _refuse(context, error)
        since_ms = params.status_timestamp_after.ToMilliseconds() if params.HasField("status_timestamp_after") else 0

        def page(tx: Tx, actor: Actor) -> Any:
            return Tasks(tx, actor.tenant).page(
                inbound.sender_of(actor), context=params.context_id, state=state, since_ms=since_ms,
                after=params.page_token, limit=limit + 1,
            )  # fmt: skip

        rows, total = await self._read(context, page)
        shown = [task_of(row, _history(params), artifacts=params.include_artifacts) for row in rows[:limit]]
        more = rows[limit - 1].id if len(rows) > limit else ""
        return ListTasksResponse(tasks=shown, next_page_token=more, page_size=limit, total_size=total)

    async def on_create_task_push_notification_config(
        self, params: TaskPushNotificationConfig, context: ServerCallContext
    ) -> TaskPushNotificationConfig:
        raise PushNotificationNotSupportedError(_NO_PUSH)

    async def on_get_task_push_notification_config(
        self, params: GetTaskPushNotificationConfigRequest, context: ServerCallContext
    ) -> TaskPushNotificationConfig:
        raise PushNotificationNotSupportedError(_NO_PUSH)

    async def on_list_task_push_notification_configs(
        self, params: ListTaskPushNotificationConfigsRequest, context: ServerCallContext
    ) -> ListTaskPushNotificationConfigsResponse:
        raise PushNotificationNotSupportedError(_NO_PUSH)

    async def on_delete_task_push_notification_config(
        self, params: DeleteTaskPushNotificationConfigRequest, context: ServerCallContext
    ) -> None:
        raise PushNotificationNotSupportedError(_NO_PUSH)

    async def on_get_extended_agent_card(
        self, params: GetExtendedAgentCardRequest, context: ServerCallContext
    ) -> AgentCard:
        raise ExtendedAgentCardNotConfiguredError("the public card is the whole card")

    async def _submitted(self, params: SendMessageRequest, context: ServerCallContext) -> Row:
        validate_proto_required_fields(params)
        wanted = set(params.configuration.accepted_output_modes)
        if wanted and wanted.isdisjoint(TAKEN):
            raise ContentTypeNotSupportedError("answers are text/plain")
        if params.configuration.HasField("task_push_notification_config"):
            raise PushNotificationNotSupportedError(_NO_PUSH)
        message = params.message
        if message.task_id:
            row = await self._found(message.task_id, context)
            raise UnsupportedOperationError(f"the task is {row.state} and takes no message; leave taskId out")
        text = text_of(message)
        try:
            depth, skill = inbound.about({**MessageToDict(params.metadata), **MessageToDict(message.metadata)})
            incoming = Incoming(
                text=text,
                agent=context.state["http"].target,
                message_id=message.message_id,
                context_id=message.context_id,
                skill=skill,
                depth=depth,
            )
            return await inbound.take_in(self._platform.calls, _actor(context), incoming)
        except RookeryError as error:
            _refuse(context, error)

    @contextmanager
    def _waiting(self, context: ServerCallContext) -> Generator[None]:
        """Room for a request that waits, or the refusal for one that finds none."""
        actor = _actor(context)
        with ExitStack() as stack:
            try:
                stack.enter_context(self._following.place(actor.tenant, inbound.sender_of(actor)))
            except RookeryError as error:
                _refuse(context, error)
            yield

    async def _followed(self, row: Row, history: int | None) -> AsyncGenerator[Event]:
        yield task_of(row, history)
        async with aclosing(self._following.moves(row)) as following:
            async for moved in following:
                for event in updates(moved):
                    yield event

    async def _found(self, task_id: str, context: ServerCallContext) -> Row:
        row = await self._read(context, lambda tx, actor: inbound.find(tx, actor, task_id))
        try:
            return await inbound.current(self._platform.database, row)
        except RookeryError as error:
            _refuse(context, error)

    async def _read(self, context: ServerCallContext, work: "Callable[[Tx, Actor], T]") -> T:
        actor = _actor(context)
        try:
            return await self._platform.database.read(lambda tx: work(tx, actor), timeout_s=inbound.LIMIT_S)
        except RookeryError as error:
            _refuse(context, error)


def _actor(context: ServerCallContext) -> Actor:
    return context.state["http"].actor


def _history(params: Any) -> int | None:
    """How many messages are wanted; None is all of them."""
    return params.history_length if params.HasField("history_length") else None


def _refuse(context: ServerCallContext, error: RookeryError) -> NoReturn:
    """Raise what the protocol has for an error of ours."""
    context.state["http"].refused = error
    told = f"{error.message} ({error.hint})" if error.hint else error.message
    if error.http == 409:
        raise TaskNotCancelableError(told) from error
    raise _ERRORS.get(error.http, UnsupportedOperationError)(told) from error

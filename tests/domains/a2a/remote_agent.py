"""An agent elsewhere: a real server of the official SDK on a real port, that does what it is told in the message."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncGenerator
from typing import Any

import uvicorn
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes, create_rest_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types.a2a_pb2 import AgentCapabilities, AgentCard, AgentInterface, AgentSkill, Message, Part, Role, Task
from google.protobuf.json_format import MessageToDict
from starlette.applications import Starlette
from starlette.requests import Request


class Obeying(AgentExecutor):
    """`echo TEXT`, `message TEXT`, `fail TEXT`, `refuse`, `ask TEXT`, or `wait`, which lasts until it is cancelled."""

    def __init__(self) -> None:
        self.asked: list[Message] = []
        self.cancelled: list[str] = []
        self.working = asyncio.Event()

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        assert context.message is not None
        self.asked.append(context.message)
        word, _, rest = context.get_user_input().partition(" ")
        if word == "message":
            said = Message(message_id="m1", role=Role.ROLE_AGENT, parts=[Part(text=rest)])
            await event_queue.enqueue_event(said)
            return
        updater = TaskUpdater(event_queue, context.task_id or "", context.context_id or "")
        if context.current_task is None:
            await event_queue.enqueue_event(
                Task(id=context.task_id, context_id=context.context_id, history=[context.message])
            )
        await updater.start_work(_said(updater, "thinking"))
        await self._do(word, rest, updater)

    async def _do(self, word: str, rest: str, updater: TaskUpdater) -> None:
        if word == "echo":
            await updater.add_artifact([Part(text=rest)], name="answer")
            await updater.complete()
        elif word == "fail":
            await updater.failed(_said(updater, rest))
        elif word == "refuse":
            await updater.reject()
        elif word == "ask":
            await updater.requires_input(_said(updater, rest))
        elif word == "wait":
            self.working.set()
            await asyncio.Event().wait()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        self.cancelled.append(context.task_id or "")
        await TaskUpdater(event_queue, context.task_id or "", context.context_id or "").cancel()

    def about(self, number: int = -1) -> dict[str, Any]:
        """What was sent along with a message."""
        return MessageToDict(self.asked[number].metadata)


def _said(updater: TaskUpdater, text: str) -> Message:
    return updater.new_agent_message([Part(text=text)])


class RemoteAgent:
    """A running agent."""

    def __init__(self, url: str, executor: Obeying) -> None:
        self.url = url
        self.executor = executor
        self.heads: list[dict[str, str]] = []

    @property
    def place(self) -> str:
        return self.url.removeprefix("http://")


@contextlib.asynccontextmanager
async def running(app: Any, listener: socket.socket) -> AsyncGenerator[None]:
    """An application on a socket, stopped when the block ends."""
    config = uvicorn.Config(app, log_config=None, lifespan="off", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    server.capture_signals = contextlib.nullcontext  # type: ignore[method-assign]
    task = asyncio.create_task(server.serve(sockets=[listener]))
    while not server.started:
        await asyncio.sleep(0.005)
    try:
        yield
    finally:
        server.should_exit = True
        await task


@contextlib.asynccontextmanager
async def remote_agent(
    *versions: str, token: str | None = None, binding: str = "JSONRPC"
) -> AsyncGenerator[RemoteAgent]:
    """An agent that speaks these revisions of the protocol, and only to those with the token, if there is one."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        spoken = versions or ("1.0",)
        card = AgentCard(
            name="Mirror",
            description="Says back what it is told",
            version="2.1.0",
            supported_interfaces=[
                AgentInterface(url=f"{url}/rpc", protocol_binding=binding, protocol_version=each) for each in spoken
            ],
            capabilities=AgentCapabilities(streaming=True),
            default_input_modes=["text/plain"],
            default_output_modes=["text/plain"],
            skills=[AgentSkill(id="echo", name="Echo", description="Says it back", tags=["mirror", "speech"])],
        )
        executor = Obeying()
        handler = DefaultRequestHandler(agent_executor=executor, task_store=InMemoryTaskStore(), agent_card=card)
        old = "0.3" in spoken
        rpc = create_jsonrpc_routes(handler, "/rpc", enable_v0_3_compat=old)
        rest = create_rest_routes(handler, enable_v0_3_compat=old, path_prefix="/rpc")
        app = Starlette(routes=[*create_agent_card_routes(card), *rpc, *rest])
        agent = RemoteAgent(url, executor)

        async def guarded(scope: Any, receive: Any, send: Any) -> None:
            head = dict(Request(scope).headers)
            agent.heads.append(head)
            if token is not None and scope["path"] == "/rpc" and head.get("authorization") != f"Bearer {token}":
                await send({"type": "http.response.start", "status": 401, "headers": []})
                await send({"type": "http.response.body", "body": b"no"})
                return
            await app(scope, receive, send)

        async with running(guarded, listener):
            yield agent

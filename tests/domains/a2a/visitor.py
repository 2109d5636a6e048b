"""An agent elsewhere that comes to us, with the official SDK's own client."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.client.client import Client
from a2a.types.a2a_pb2 import (
    AgentCard,
    CancelTaskRequest,
    GetTaskRequest,
    Message,
    Part,
    Role,
    SendMessageRequest,
    StreamResponse,
    Task,
    TaskState,
)

from tests.domains.a2a.outpost import Outpost
from tests.jobs.working import running_worker
from tests.server.streamable.web import Web, serving


class Visitor:
    """Talks with a server by its card."""

    def __init__(self, client: Client, http: httpx.AsyncClient, card: AgentCard) -> None:
        self.client = client
        self.http = http
        self.card = card

    def stream(self, text: str, *, parts: list[Part] | None = None, **message: Any) -> AsyncIterator[StreamResponse]:
        """Whatever the server says about a message."""
        about = message.pop("about", {})
        configuration = message.pop("configuration", None)
        sent = Message(
            **{"message_id": f"m-{id(object())}-{text[:20]}", "role": Role.ROLE_USER, **message},
            parts=[Part(text=text)] if parts is None else parts,
        )
        sent.metadata.update(about)
        return self.client.send_message(SendMessageRequest(message=sent, configuration=configuration))

    async def events(self, text: str, **message: Any) -> list[StreamResponse]:
        return [event async for event in self.stream(text, **message)]

    async def send(self, text: str, **message: Any) -> Task:
        """The task that a message leads to, as the server first tells it."""
        async for event in self.stream(text, **message):
            assert event.HasField("task")
            return event.task
        raise AssertionError("nothing was told")

    async def look(self, task_id: str, **more: Any) -> Task:
        return await self.client.get_task(GetTaskRequest(id=task_id, **more))

    async def cancel(self, task_id: str) -> Task:
        return await self.client.cancel_task(CancelTaskRequest(id=task_id))

    async def until(self, task_id: str, state: str) -> Task:
        """The task once it is in a state; whoever waits too long fails."""
        for _ in range(3000):
            task = await self.look(task_id)
            if state_of(task) == state:
                return task
            await asyncio.sleep(0.01)
        raise AssertionError(f"the task is never {state}")


def state_of(told: Any) -> str:
    """The state that a task or an update tells of."""
    return TaskState.Name(told.status.state).removeprefix("TASK_STATE_").lower()


def answer_of(task: Task) -> str:
    return "\n".join(part.text for artifact in task.artifacts for part in artifact.parts)


@contextlib.asynccontextmanager
async def visiting(web: Web, token: str | None = None, *, version: str = "1.0", **how: Any) -> AsyncGenerator[Visitor]:
    """A client that speaks one revision of the protocol."""
    head = {} if token is None else {"authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(headers=head, timeout=30, trust_env=False, verify=False) as http:
        card = await A2ACardResolver(http, web.url).get_agent_card()
        kept = [each for each in card.supported_interfaces if each.protocol_version == version]
        del card.supported_interfaces[:]
        card.supported_interfaces.extend(kept)
        config = ClientConfig(httpx_client=http, **how)
        yield Visitor(ClientFactory(config).create(card), http, card)


@contextlib.asynccontextmanager
async def open_house(outpost: Outpost, *, work: bool = True) -> AsyncGenerator[Web]:
    """The outpost's own server, and a worker that does what comes in."""
    async with serving(outpost.fleet) as web:
        if not work:
            yield web
            return
        async with running_worker(outpost.platform):
            yield web

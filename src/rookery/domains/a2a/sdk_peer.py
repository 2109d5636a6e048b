"""Agents that speak A2A, by the official SDK behind our address guard. Imports the SDK: import this inside functions.

Answers are fetched by looking, not as a stream: each is read whole, within a limit of size and time.
"""

from collections.abc import Iterable
from typing import Any

import httpx
from a2a.client.base_client import BaseClient
from a2a.client.client import Client, ClientCallContext, ClientConfig
from a2a.client.client_factory import ClientFactory
from a2a.client.errors import A2AClientError
from a2a.types.a2a_pb2 import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    CancelTaskRequest,
    GetTaskRequest,
    Message,
    Part,
    Role,
    SendMessageRequest,
    Task,
    TaskState,
)
from a2a.utils.errors import A2AError
from google.protobuf.json_format import MessageToDict

from rookery.core.errors import Conflict, RookeryError, TimedOut, ValidationFailed
from rookery.core.ids import new_id
from rookery.domains.a2a.cards import AGENT, Json, place_of
from rookery.domains.a2a.json_values import is_modest
from rookery.domains.a2a.peer import (
    MAX_ANSWER_BYTES,
    MAX_VALUES,
    REQUEST_S,
    STATES,
    Asked,
    Told,
    cut,
    sent_headers,
    unreadable,
)
from rookery.outgoing.client import GuardedClient
from rookery.outgoing.threads import in_thread
from rookery.settings import Settings

BINDINGS = ["JSONRPC", "HTTP+JSON"]
HISTORY = 10
"""So much of what was said is asked for: only the agent's last words can be its answer."""
_OURS = frozenset({"host", "connection", "accept-encoding", "content-length", "user-agent"})


class GuardedTransport(httpx.AsyncBaseTransport):
    """Lets the SDK's own HTTP client reach what our guard allows, and nothing else."""

    def __init__(self, client: GuardedClient, settings: Settings, place: str) -> None:
        self._client = client
        self._settings = settings
        self._place = place

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        url = str(request.url)
        headers = {name: value for name, value in request.headers.items() if name not in _OURS}
        headers |= {"user-agent": AGENT, **sent_headers(self._settings, self._place, place_of(url))}
        answer = await self._client.request(
            request.method,
            url,
            content=await request.aread(),
            headers=headers,
            timeout_s=request.extensions.get("timeout", {}).get("read") or REQUEST_S,
            max_bytes=MAX_ANSWER_BYTES,
        )
        if not await in_thread(lambda: is_modest(answer.body, MAX_VALUES)):
            raise ValidationFailed(f"the remote agent answered with more than {MAX_VALUES} values", hint="ask for less")
        # Nothing was packed, whatever the answer says of itself.
        kept = {name: value for name, value in answer.headers.items() if name == "content-type"}
        return httpx.Response(answer.status, headers=kept, content=answer.body, request=request)


class SdkPeer:
    """One conversation. `card` is one that `card_reading` has made plain."""

    def __init__(self, card: Json, base: str, client: GuardedClient, settings: Settings) -> None:
        transport = GuardedTransport(client, settings, place_of(base))
        self._http = httpx.AsyncClient(transport=transport, trust_env=False, follow_redirects=False)
        config = ClientConfig(
            streaming=False, polling=True, httpx_client=self._http, supported_protocol_bindings=BINDINGS
        )
        try:
            self._client: Client = ClientFactory(config).create(_short_card(card))
        except Exception as error:
            raise unreadable(f"its card names no way that we speak ({', '.join(BINDINGS)})") from error
        assert isinstance(self._client, BaseClient)

    async def send(self, asked: Asked) -> Told:
        """Send the message. An agent that answers at once may take the whole time for it."""
        message = Message(
            message_id=new_id("msg"),
            role=Role.ROLE_USER,
            parts=[Part(text=asked.text)],
            task_id=asked.task,
            context_id=asked.context,
        )
        message.metadata.update(asked.about)
        request = SendMessageRequest(message=message)
        sending = self._client.send_message(request, context=ClientCallContext(timeout=asked.limit_s))
        try:
            async for event in sending:
                if event.HasField("task"):
                    return _told(event.task)
                if event.HasField("message"):
                    return Told("completed", _texts([event.message.parts]), context=event.message.context_id)
        except Exception as error:
            raise _error(error) from error
        raise unreadable("it is neither a task nor a message")

    async def look(self, task: str) -> Told:
        """How far the task is."""
        try:
            wanted = GetTaskRequest(id=task, history_length=HISTORY)
            return _told(await self._client.get_task(wanted, context=_BRIEF))
        except Exception as error:
            raise _error(error) from error

    async def cancel(self, task: str) -> None:
        """Ask the agent to stop."""
        try:
            await self._client.cancel_task(CancelTaskRequest(id=task), context=_BRIEF)
        except Exception as error:
            raise _error(error) from error


_BRIEF = ClientCallContext(timeout=REQUEST_S)


def _short_card(card: Json) -> AgentCard:
    """As much of the card as the SDK's client needs."""
    return AgentCard(
        name=card["name"],
        version=card["version"],
        capabilities=AgentCapabilities(streaming=False),
        supported_interfaces=[
            AgentInterface(
                url=each["url"],
                protocol_binding=each["binding"],
                protocol_version=each["version"],
                tenant=each["tenant"],
            )
            for each in card["interfaces"]
        ],
    )


def _told(task: Task) -> Told:
    name = TaskState.Name(task.status.state) if task.status.state in TaskState.values() else ""
    state = name.removeprefix("TASK_STATE_").lower().replace("_", "-")
    if state == "unspecified":
        # Not all agents say so before they have begun.
        state = "submitted"
    if state not in STATES or not task.id:
        raise unreadable("a task without an id or a state that is known")
    said = _texts([task.status.message.parts])
    done = _texts(artifact.parts for artifact in task.artifacts)
    if state == "completed" and not (done or said):
        agent = [message for message in task.history if message.role == Role.ROLE_AGENT]
        said = _texts([agent[-1].parts]) if agent else ""
    text = "\n\n".join(part for part in (done, said) if part) if state == "completed" else said
    return Told(state, text, task.id, task.context_id)


def _texts(some: Iterable[Iterable[Part]]) -> str:
    return cut("\n\n".join(_part(part) for parts in some for part in parts).strip())


def _part(part: Part) -> str:
    """A part in words; files are named, not fetched."""
    if part.HasField("text"):
        return part.text
    if part.HasField("data"):
        return str(MessageToDict(part.data))
    where = part.url if part.HasField("url") else f"{len(part.raw)} bytes"
    return f"[file {part.filename or part.media_type or 'without a name'}: {where}]"


def _error(error: BaseException) -> RookeryError:
    """What the caller is told of whatever the SDK raises about an answer."""
    if isinstance(error, RookeryError):
        return error
    if isinstance(error, TimeoutError):
        return TimedOut("the remote agent did not answer in time", hint="try again later")
    if isinstance(error, A2AError) and not isinstance(error, A2AClientError):
        return Conflict(f"the remote agent refuses: {cut(error.message, 500)}", hint="discover_agent shows its card")
    return unreadable(_said(error))


def _said(error: Any) -> str:
    return error.message if isinstance(error, A2AError) else type(error).__name__

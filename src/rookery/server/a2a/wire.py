"""Tasks as the protocol has them. Imports the SDK: import this inside functions only."""

import json
from collections.abc import Iterator

from a2a.types.a2a_pb2 import (
    Artifact,
    Message,
    Part,
    Role,
    Task,
    TaskArtifactUpdateEvent,
    TaskState,
    TaskStatus,
    TaskStatusUpdateEvent,
)
from a2a.utils.errors import ContentTypeNotSupportedError
from google.protobuf.json_format import MessageToDict
from google.protobuf.timestamp_pb2 import Timestamp

from rookery.domains.a2a.store import Row

_STATES = {
    "submitted": TaskState.TASK_STATE_SUBMITTED,
    "working": TaskState.TASK_STATE_WORKING,
    "completed": TaskState.TASK_STATE_COMPLETED,
    "failed": TaskState.TASK_STATE_FAILED,
    "canceled": TaskState.TASK_STATE_CANCELED,
}


def text_of(message: Message) -> str:
    """What a message says. Files are refused: nothing here would look at them."""
    said: list[str] = []
    for part in message.parts:
        if part.HasField("text"):
            said.append(part.text)
        elif part.HasField("data"):
            said.append(json.dumps(MessageToDict(part.data), ensure_ascii=False))
        else:
            raise ContentTypeNotSupportedError("only text and data parts are taken")
    return "\n\n".join(said)


def state_named(state: "TaskState") -> str | None:
    """Our name of a state; None if no task of ours is ever in it, empty if it is none."""
    if state == TaskState.TASK_STATE_UNSPECIFIED:
        return ""
    return next((name for name, known in _STATES.items() if known == state), None)


def task_of(row: Row, history: int | None = None, *, artifacts: bool = True) -> Task:
    """The task, with the last `history` messages, or all of them."""
    said = [_message(row, Role.ROLE_USER, row.content, row.message_id)]
    if row.answer is not None:
        said.append(_message(row, Role.ROLE_AGENT, row.answer, f"{row.id}-answer"))
    if history is not None:
        said = said[-history:] if history > 0 else []
    given = [_artifact(row)] if artifacts and row.answer is not None else []
    return Task(id=row.id, context_id=row.context_id, status=_status(row), artifacts=given, history=said)


def updates(row: Row) -> Iterator[TaskArtifactUpdateEvent | TaskStatusUpdateEvent]:
    """What a stream is told when the task has moved to the state that it is in."""
    if row.answer is not None:
        yield TaskArtifactUpdateEvent(
            task_id=row.id, context_id=row.context_id, artifact=_artifact(row), append=False, last_chunk=True
        )
    yield TaskStatusUpdateEvent(task_id=row.id, context_id=row.context_id, status=_status(row))


def _artifact(row: Row) -> Artifact:
    return Artifact(artifact_id=f"{row.id}-answer", name="answer", parts=[Part(text=row.answer)])


def _status(row: Row) -> TaskStatus:
    at = Timestamp()
    at.FromMilliseconds(row.updated_ms)
    status = TaskStatus(state=_STATES[row.state], timestamp=at)
    if row.error is not None:
        status.message.CopyFrom(_message(row, Role.ROLE_AGENT, row.error, f"{row.id}-error"))
    return status


def _message(row: Row, role: "Role", text: str, message_id: str) -> Message:
    return Message(message_id=message_id, context_id=row.context_id, task_id=row.id, role=role, parts=[Part(text=text)])

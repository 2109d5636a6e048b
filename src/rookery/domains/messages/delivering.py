"""How a message reaches its receiver: a session that answers, a work task, or the inbox."""

from dataclasses import dataclass
from typing import Any, cast

from rookery.core.actor import Actor
from rookery.core.errors import RookeryError
from rookery.db.tx import Tx
from rookery.domains.messages.store import Messages, Row
from rookery.domains.messages.thread import Said, prompt_for
from rookery.identity.binding import bound_by
from rookery.identity.store import IdentityStore
from rookery.jobs.running import Running
from rookery.lifecycle.session_calls import call_approved
from rookery.lifecycle.session_runs import Ended, Task, run_session
from rookery.lifecycle.sessions import Runtime

WORK = "[WORK]"
"""A message that begins so asks for a work task instead of an answer."""


class Undelivered(Exception):
    """The message comes to nothing. `blames` says whether that is the receiver's doing."""

    def __init__(self, code: str, error: str, *, cost_micros: int = 0, blames: bool = True) -> None:
        super().__init__(error)
        self.code = code
        self.cost_micros = cost_micros
        self.blames = blames


@dataclass(frozen=True, slots=True)
class Answered:
    """What the receiver said, and what that cost."""

    text: str
    cost_micros: int = 0
    by_session: bool = False


def message_key(message_id: str) -> str:
    """Names the delivery in all the world: what is done under it is done once."""
    return f"message:{message_id}"


def work_wanted(text: str) -> str | None:
    """The description of the work that a message asks for, None if it is for an answer."""
    return text[len(WORK) :].strip() if text.startswith(WORK) else None


class Delivery:
    """One message on its way, inside a job."""

    def __init__(self, job: Running, message: Row) -> None:
        self.job = job
        self.message = message

    async def run(self) -> Answered | None:
        """The answer; None if nobody here can answer, so that the message has to wait in the inbox."""
        wanted = work_wanted(self.message.content)
        if wanted is not None:
            return await self._work(wanted)
        runtime = cast("Runtime | None", self.job.platform.calls.facts.get("runtime"))
        if runtime is None:
            return None
        return await self._session(runtime)

    async def _work(self, description: str) -> Answered:
        # The same key gives the same task, should the worker die before the answer is kept.
        key = message_key(self.message.id)
        arguments = {"description": description, "source_id": key}
        try:
            made = await call_approved(self.job, self._receiver, "create_work_task", arguments, session=key)
        except RookeryError as error:
            if error.retryable and error.code != "RATE_LIMITED":
                raise
            raise Undelivered("WORK_TASK_ERROR", f"{error.code}: {error.message}", blames=False) from error
        task = made.structured
        return Answered(f"Work task {task.get('id')} is {task.get('status')} on branch {task.get('branch_name')}.")

    async def _session(self, runtime: Runtime) -> Answered:
        key = message_key(self.message.id)
        before = await self.job.read(lambda tx: Messages(tx, self.job.tenant).before(self.message))
        actor = await self._receiver(session=key)
        ended = await self._wait(runtime, actor, key, before)
        outcome, cost_micros = ended.outcome, ended.outcome.cost_micros
        if outcome.status != "done":
            # What the session says of its failure is not for the sender: it may name whatever the receiver can see.
            why = "took too long" if ended.late else "failed"
            told = f"the session of {self.message.to_name} {why}; the run {ended.run_id} has more"
            raise Undelivered("DELIVERY_FAILED", told, cost_micros=cost_micros)
        if not outcome.output.strip():
            raise Undelivered("EMPTY_RESPONSE", "the session ended without an answer", cost_micros=cost_micros)
        return Answered(outcome.output, cost_micros, by_session=True)

    async def _wait(self, runtime: Runtime, actor: Actor, key: str, before: list[Said]) -> Ended:
        prompt = prompt_for(self.message.from_name, self.message.content, before)
        task = Task(kind="message", actor=actor, prompt=prompt, key=key, asked_by=self.message.held)
        return await run_session(self.job, runtime, task, self._note)

    def _note(self, tx: Tx, session_id: str) -> None:
        Messages(tx, self.job.tenant).note_session(self.message.id, session_id)

    async def _receiver(self, **binding: Any) -> Actor:
        """The receiver with its own rights of this moment, held to what the sender's session was held to."""
        project = await self.job.read(self._project)
        try:
            return await self.job.actor(
                agent=self.message.to_id, project=project, **bound_by(self.message.held), **binding
            )
        except RookeryError as error:
            if error.retryable:
                raise
            raise Undelivered("DELIVERY_FAILED", f"{error.code}: {error.message}", blames=False) from error

    def _project(self, tx: Tx) -> str | None:
        """The sender's project, unless it is closed to the receiver."""
        closed = IdentityStore(tx, self.job.tenant).closed_to(self.message.to_id)
        return None if self.message.project_id in closed else self.message.project_id

"""The jobs of sessions: a turn for each message, and a word to whoever lost its turn before an answer came."""

import asyncio
from typing import Any

from rookery.asks.answering import read_decision
from rookery.asks.store import Asks
from rookery.core.actor import Actor
from rookery.core.errors import Conflict, NotFound, RookeryError
from rookery.db.tx import Tx
from rookery.jobs.kinds import Ended, Finish, JobArgs, job
from rookery.jobs.running import Running
from rookery.jobs.store import Jobs
from rookery.lifecycle.pauses import Paused
from rookery.lifecycle.run_store import NewRun
from rookery.lifecycle.session_jobs import end_lost
from rookery.lifecycle.session_runs import Task, run_session
from rookery.lifecycle.session_store import SessionRuns
from rookery.lifecycle.sessions import Session
from rookery.sessions.asking import ANSWERED_JOB
from rookery.sessions.ending import Said, said_of
from rookery.sessions.lost import is_busy, run_of, tell_lost, tell_refused
from rookery.sessions.manager import AgentSessions, Bounds
from rookery.sessions.store import TURN, Row, SessionRows
from rookery.sessions.tables import DONE, ENDED, LOST, QUEUED, TAKEN
from rookery.sessions.turn import Turn

BUSY_S = 0.5
AGAIN_MS = 5_000
MOST_LOOKS = 60
"""So often the answer looks for its turn before it is given up."""


class TurnArgs(JobArgs):
    """Which message of which session."""

    session_id: str
    message_id: str


class AnsweredArgs(JobArgs):
    """Which ask, and for which turn it was."""

    session_id: str
    run_id: str
    message_id: str | None = None
    ask_id: str
    looks: int = 0


class _OneTurn:
    """The runtime of a single message. Whoever starts its session gets the turn."""

    def __init__(self, sessions: AgentSessions, row: Row, said: Said) -> None:
        self._sessions = sessions
        self._row = row
        self._said = said
        self.turn: Turn | None = None

    async def start_session(
        self,
        actor: Actor,
        prompt: str,
        *,
        key: str,
        cwd: str | None = None,
        max_turns: int | None = None,
        budget_usd: float | None = None,
        model: str | None = None,
    ) -> Session:
        bounds = Bounds(max_turns=max_turns, budget_usd=budget_usd, keep=True)
        return await self._sessions.begin(self._row, actor, self._said, bounds, self._made)

    def _made(self, turn: Turn) -> None:
        self.turn = turn


@job(TURN, attempts=3, backoff_s=1.0, lasting=True)
async def take_turn(job: Running, args: TurnArgs) -> Finish:
    """Let the agent of a session answer one message."""
    sessions: AgentSessions = job.platform.calls.facts["sessions"]
    await _until_free(job, sessions, args.session_id)
    taken = await job.write(lambda tx: _take(tx, job, args))
    if taken is None:
        return None
    row, message = taken
    try:
        actor = await sessions.actor_of(row)
    except RookeryError as error:
        if error.retryable:
            raise
        why = said_of(error)
        return lambda tx: tell_refused(tx, job.tenant, row, message, _run_of_job(job, row), why)
    said = Said(text=message.text, sent_by=message.sent_by, id=message.id)
    one = _OneTurn(sessions, row, said)
    task = Task(kind="session", actor=actor, prompt=message.text, key=row.id, cwd=row.cwd)
    try:
        await run_session(job, one, task, lambda tx, session_id: None)
    except Paused as paused:
        if one.turn is None:
            why = f"its messages wait: {paused.why}"
            await job.write(lambda tx: SessionRows(tx, job.tenant).note(row.id, error=why))
            raise
        # The turn has ended, and says why.
    except Exception:
        if one.turn is None:
            raise
        # It did not start, and the session says why; or its end could not be written.
    turn = one.turn
    return None if turn is None else lambda tx: _end(tx, job.tenant, turn)


def _run_of_job(job: Running, row: Row) -> NewRun:
    return NewRun(
        project_id=row.project_id or "",
        issue_id=row.issue_id,
        agent=row.agent,
        kind="session",
        key=row.id,
        session=row.id,
        attempt=job.attempt,
        job_id=job.id,
    )


def _end(tx: Tx, tenant: str, turn: Turn) -> None:
    """Whatever of the end of a turn is not on record yet."""
    if not turn.noted:
        turn.note_end(tx)
    run = run_of(tx, tenant, turn.run_id)
    if run is not None and run.status == "running":
        status = "succeeded" if turn.outcome.status == "done" else "failed"
        SessionRuns(tx, tenant).finish(run.id, status, turn.outcome)


async def _until_free(job: Running, sessions: AgentSessions, session_id: str) -> None:
    """Wait for a turn that another job has begun, such as the one that the session was made for."""
    while True:
        living = sessions.turns.get(session_id)
        if living is not None:
            await living.wait()
        # What this process has still to write of a turn is not to be taken for lost.
        await sessions.log.flush(session_id)

        def busy(tx: Tx) -> bool:
            row = SessionRows(tx, job.tenant).find(session_id)
            return row is not None and is_busy(tx, job.tenant, row, but_job=job.id)

        if not await job.write(busy):
            return
        await asyncio.sleep(BUSY_S)


def _take(tx: Tx, job: Running, args: TurnArgs) -> tuple[Row, Row] | None:
    """The session and the message; None if there is nothing to do. One that was begun and not ended is lost."""
    rows = SessionRows(tx, job.tenant)
    row = rows.find(args.session_id)
    if row is None:
        return None
    message = rows.first(row.id, TAKEN)
    run = run_of(tx, job.tenant, row.run_id)
    if message is not None and run is not None and run.created_ms >= message.taken_ms:
        tell_lost(tx, job.tenant, row.id, run.id, message.id)
        if run.job_id == job.id:
            return None
        message = None
    message = message or rows.take(row.id)
    if message is None:
        return None
    if row.state == ENDED:
        rows.end_message(message.id, "dropped")
        return None
    return row, message


@take_turn.ended
def _given_up(tx: Tx, end: Ended) -> None:
    end_lost(tx, end)
    rows = SessionRows(tx, end.tenant)
    session_id = end.args.session_id
    message = rows.first(session_id, TAKEN) or (rows.first(session_id, QUEUED) if end.state == "failed" else None)
    if message is not None:
        rows.end_message(message.id, "lost")
        rows.note(session_id, error=end.error)


@job(ANSWERED_JOB, attempts=5)
async def bring_answer(job: Running, args: AnsweredArgs) -> Finish:
    """Tell an agent that lost its turn what was decided meanwhile, so that it goes on."""
    return lambda tx: _bring(tx, job.tenant, args)


def _bring(tx: Tx, tenant: str, args: AnsweredArgs) -> None:
    ask = Asks(tx, tenant).find(args.ask_id)
    if ask is None or ask.told_ms is not None or ask.answer is None or args.message_id is None:
        return
    rows = SessionRows(tx, tenant)
    message = rows.message(args.session_id, args.message_id)
    if message is None or message.state == DONE:
        return
    if message.state != LOST:
        # Whoever waits for it is about to take it; or its process is gone, and nobody has found that yet.
        if args.looks < MOST_LOOKS:
            again = args.model_copy(update={"looks": args.looks + 1})
            key = f"ask-follow:{args.ask_id}:{again.looks}"
            Jobs(tx, tenant).defer(bring_answer, again, delay_ms=AGAIN_MS, key=key)
        return
    try:
        rows.queue(args.session_id, _told(ask), ask.answered_by or "owner", f"answer-{ask.id}")
    except (Conflict, NotFound):
        # The session has ended since; nobody goes on with it.
        return


def _told(ask: Any) -> str:
    """What the agent is told: it has lost its turn, and perhaps all that it knew."""
    what, by = ask.subject or ask.question, ask.answered_by
    if ask.kind != "approval":
        return f"You asked, before you were interrupted: {what}\n\nThe answer is: {ask.answer['text']}\n\nGo on."
    decision = read_decision(ask.answer["text"])
    if decision.verdict == "yes":
        return f"{by} has approved {what}, which you wanted before you were interrupted. Go on."
    why = f": {decision.reason}" if decision.reason else ""
    return f"{by} has denied {what}, which you wanted before you were interrupted{why}. Go on without it."

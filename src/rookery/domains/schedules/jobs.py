"""The kinds of jobs behind schedules: a due time has come, somebody has agreed or not, do what is due."""

from collections.abc import Callable

from rookery.db.tx import Tx
from rookery.domains.schedules.asking import DECIDE, DecideArgs, ask_of
from rookery.domains.schedules.deciding import decided_by_answer
from rookery.domains.schedules.executing import Execution, begin, settle
from rookery.domains.schedules.planning import (
    EXECUTE,
    EXECUTE_ATTEMPTS,
    FIRE,
    FIRE_ATTEMPTS,
    ExecuteArgs,
    FireArgs,
    not_fired,
)
from rookery.domains.schedules.planning import fire as fire_now
from rookery.jobs.kinds import Ended, job
from rookery.jobs.running import Running
from rookery.lifecycle.session_jobs import end_lost


@job(FIRE, attempts=FIRE_ATTEMPTS, backoff_s=1.0)
async def fire(job: Running, args: FireArgs) -> Callable[[Tx], None]:
    def finish(tx: Tx) -> None:
        # The database may run this again after a rolled-back batch.
        job.events.clear()
        execution = fire_now(tx, job.tenant, args)
        if execution is not None and execution.status == "awaiting_approval":
            job.publish(
                "ScheduleApprovalRequested",
                subject=execution.id,
                schedule=execution.schedule_id,
                agent=execution.agent_id,
                schedule_name=execution.config_snapshot["name"],
                actions=[step["type"] for step in execution.steps],
            )
            asked = ask_of(tx, job.tenant, execution.id)
            if asked is not None:
                told = {"kind": asked.kind, "agent": asked.agent_id, "question": asked.question}
                job.publish("AskOpened", subject=asked.id, **told)

    return finish


@fire.ended
def _fire_ended(tx: Tx, end: Ended) -> None:
    if end.state == "failed":
        not_fired(tx, end.tenant, end.args, "failed", f"it could not be started: {end.error}")
    else:
        not_fired(tx, end.tenant, end.args, "skipped", end.error)


@job(DECIDE, attempts=FIRE_ATTEMPTS, backoff_s=1.0)
async def decide(job: Running, args: DecideArgs) -> Callable[[Tx], None]:
    """What `manage_schedule` does with approve and deny, for an answer that came another way."""

    def finish(tx: Tx) -> None:
        job.events.clear()
        row = decided_by_answer(tx, job.tenant, args)
        if row is not None:
            approved = row.status == "approved"
            job.publish("ScheduleExecutionDecided", subject=row.id, schedule=row.schedule_id, approved=approved)

    return finish


@job(EXECUTE, attempts=EXECUTE_ATTEMPTS, lasting=True)
async def execute(job: Running, args: ExecuteArgs) -> Callable[[Tx], None] | None:
    row = await job.write(lambda tx: begin(tx, job.tenant, args.execution_id))
    if row is None:
        return None
    execution = Execution(job, row)
    await execution.run()
    status = "failed" if execution.failed else "completed"

    def finish(tx: Tx) -> None:
        job.events.clear()
        ended = settle(tx, job.tenant, args.schedule_id, args.execution_id, status, execution.result)
        if ended is not None:
            job.publish(
                "ScheduleExecutionEnded",
                subject=ended.id,
                schedule=ended.schedule_id,
                agent=ended.agent_id,
                status=status,
                result=ended.result,
                notify_address=ended.config_snapshot["notify_address"],
            )

    return finish


@execute.ended
def _execute_ended(tx: Tx, end: Ended) -> None:
    end_lost(tx, end)
    settle(tx, end.tenant, end.args.schedule_id, end.args.execution_id, end.state, end.error)

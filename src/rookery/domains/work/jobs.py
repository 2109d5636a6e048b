"""The jobs behind a work task: the one that works on it, and the one that clears up when it has ended."""

import logging

from rookery.core.errors import RookeryError
from rookery.db.tx import Tx
from rookery.domains.work.runner import Runner
from rookery.domains.work.store import Row, WorkTasks
from rookery.jobs.kinds import Ended, Finish, JobArgs, job
from rookery.jobs.running import Running
from rookery.jobs.store import Jobs
from rookery.lifecycle.session_jobs import end_lost

log = logging.getLogger("rookery.work")
QUEUE = "work"


class TaskArgs(JobArgs):
    task_id: str


@job("work.run", queue=QUEUE, attempts=3, backoff_s=5.0, lasting=True)
async def run_work(job: Running, args: TaskArgs) -> Finish:
    """Do the task. What a second try cannot mend ends it; everything else is tried again."""
    try:
        await Runner(job, args.task_id).run()
    except RookeryError as error:
        if error.retryable:
            raise
        said = f"{error.message}; {error.hint}" if error.hint else error.message
        await job.write(lambda tx: WorkTasks(tx, job.tenant).fail(args.task_id, said))
    return lambda tx: clear_up(tx, job.tenant, args.task_id)


@run_work.ended
def _given_up(tx: Tx, end: Ended) -> None:
    end_lost(tx, end)
    WorkTasks(tx, end.tenant).fail(end.args.task_id, end.error)
    clear_up(tx, end.tenant, end.args.task_id)


@job("work.end", queue=QUEUE, attempts=5, backoff_s=10.0)
async def end_work(job: Running, args: TaskArgs) -> Finish:
    """Remove the working tree of a task that has ended, and tell the others. Its branch stays."""
    task = await job.read(lambda tx: WorkTasks(tx, job.tenant).find(args.task_id))
    if task is None:
        return None
    job.publish("WorkTaskEnded", subject=task.id, status=task.status, agent=task.agent_id, source_id=task.source_id)
    if task.worktree_dir is None:
        return None
    if not await Runner(job, task.id).put_away(task):
        log.warning("the working tree of %s has changes that are not on its branch, and stays", task.id)
        return None
    return lambda tx: WorkTasks(tx, job.tenant).forget_worktree(task.id)


def defer_work(tx: Tx, task: Row) -> None:
    """Let a worker do the task. Those of one project follow each other."""
    Jobs(tx, task.tenant).defer(
        run_work, TaskArgs(task_id=task.id), key=f"work:{task.id}", lock=f"work:{task.project_id}"
    )  # fmt: skip


def cancel_work(tx: Tx, task: Row) -> None:
    """Stop whoever works on the task. It is cleared up as soon as nobody does."""
    jobs = Jobs(tx, task.tenant)
    jobs.cancel_key(f"work:{task.id}")
    left = jobs.by_key(f"work:{task.id}")
    if left is None or left.state != "running":
        clear_up(tx, task.tenant, task.id)


def clear_up(tx: Tx, tenant: str, task_id: str) -> None:
    """Have the task's working tree removed and its end told, once."""
    Jobs(tx, tenant).defer(end_work, TaskArgs(task_id=task_id), key=f"work-end:{task_id}")

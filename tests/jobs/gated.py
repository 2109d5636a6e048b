"""A domain whose only job waits before a gate that tests open and close."""

from rookery.jobs.kinds import Finish, JobArgs, Postponed, job
from rookery.jobs.running import Running

HOUR_S = 3600.0
closed: set[str] = set()
tried: list[int] = []


class GateArgs(JobArgs):
    gate: str
    delay_s: float = HOUR_S
    until: str | None = "opening"
    opens_meanwhile: bool = False


@job("gated.pass", attempts=1)
async def through(job: Running, args: GateArgs) -> Finish:
    tried.append(job.id)
    if args.gate in closed:
        if args.opens_meanwhile:
            closed.discard(args.gate)
        raise Postponed(
            f"{args.gate} is closed", delay_s=args.delay_s, until=args.until, holds=lambda tx: args.gate in closed
        )
    return None

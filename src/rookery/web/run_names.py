"""What runs are called on pages: by what they are about. Their ids stand beside that, for those who look for one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from rookery.domains.schedules.execution_names import execution_of, name_executions
from rookery.domains.workflows.run_names import name_workflow_runs, run_of
from rookery.web.showing import pretty
from rookery.web.visit import Visit

Run = Mapping[str, Any]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Origin:
    """What had the run: a schedule or a workflow, and the address of what came of it there."""

    what: str
    name: str
    to: str


@dataclass(frozen=True, slots=True)
class RunName:
    """`title` says what the run is about, `about` the rest of what it is. `origin` is None for most."""

    title: str
    about: str
    origin: Origin | None


async def names_of(visit: Visit, runs: Sequence[Run]) -> dict[str, RunName]:
    """What each of the runs is called, by its id."""
    origins = await origins_of(visit, {run["id"]: run["key"] for run in runs})
    return {run["id"]: run_name(run, origins.get(run["id"])) for run in runs}


def run_name(run: Run, origin: Origin | None) -> RunName:
    """Its schedule or workflow, else what its session is called or its issue, else what kind of run it is and whose."""
    more = [f"attempt {run['attempt']}" if run["attempt"] > 1 else "", run["project"]]
    role, kind = [run["profile"], run["phase"]], run["kind"] or "run"
    if origin is None and run["issue"] and not (kind == "session" and run["session_title"]):
        issue = f"{run['issue']} {run['issue_title'] or ''}".strip()
        return RunName(_joined(issue, *role), _joined(kind, *more), None)
    title = origin.name if origin else run["session_title"] or _of_whom(kind, run["agent_name"])
    return RunName(title, _joined(kind, *role, *more), origin)


def _of_whom(kind: str, agent: str | None) -> str:
    what = pretty(kind)[:1].upper() + pretty(kind)[1:]
    return f"{what} of {agent}" if agent else what


def _joined(*words: str | None) -> str:
    return " · ".join(word for word in words if word)


async def origins_of(visit: Visit, keys: Mapping[T, str | None]) -> dict[T, Origin]:
    """For whatever was done for a schedule or a workflow, as its key says: for which, if the person may see that."""
    executions = {each: found for each, key in keys.items() if (found := execution_of(key))}
    flows = {each: found for each, key in keys.items() if (found := run_of(key))}
    known: dict[str, Origin] = {}
    if executions and await visit.may(name_executions):
        asked = {"execution_ids": sorted(set(executions.values()))}
        for each in (await visit.call(name_executions, asked))["executions"]:
            to = visit.url(f"/automation/schedules/{each['schedule_id']}/executions/{each['execution_id']}")
            known[each["execution_id"]] = Origin("Schedule", each["name"], to)
    if flows and await visit.may(name_workflow_runs):
        asked = {"run_ids": sorted(set(flows.values()))}
        for each in (await visit.call(name_workflow_runs, asked))["runs"]:
            to = visit.url(f"/automation/workflows/{each['workflow_id']}/runs/{each['run_id']}")
            known[each["run_id"]] = Origin("Workflow", each["name"], to)
    return {each: known[of] for each, of in {**executions, **flows}.items() if of in known}

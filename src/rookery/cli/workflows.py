"""`rookery workflows`: graphs of work, made and run by the owner, and what becomes of their runs."""

import json
import time
from collections.abc import Mapping
from typing import IO, TYPE_CHECKING, Any

import click

from rookery.cli.options import ListByDefault, given, home_option, managing
from rookery.cli.session import actor_of, call_as_owner, opened, owner_flags
from rookery.cli.show import fields, listing, print_json
from rookery.core.errors import InvalidParams, TimedOut

if TYPE_CHECKING:
    from rookery.app import Platform
    from rookery.domains.workflows.graph import Graph
    from rookery.domains.workflows.machine import NodeState

LOOK_S = 0.3
LINE = ["id", "status", "nodes", "agent_id", "name"]
RUN_LINE = ["id", "status", "started_by", "error"]


@click.group(cls=ListByDefault)
def workflows() -> None:
    """Workflows of agents, and their runs."""


def _manage(home: str | None, action: str, **arguments: Any) -> dict[str, Any]:
    return call_as_owner(home, "manage_workflow", given(action=action, **arguments))


@workflows.command("list")
@managing
def list_(home: str | None, as_json: bool) -> None:
    """List the workflows of all agents, newest first."""
    empty = "no workflows; make one: rookery workflows create FILE.json"
    listing(_manage(home, "list")["workflows"], LINE, as_json=as_json, empty=empty)


@workflows.command()
@click.argument("workflow")
@managing
def show(workflow: str, home: str | None, as_json: bool) -> None:
    """Show a workflow with its graph."""
    _show_workflow(_manage(home, "get", workflow_id=workflow)["workflows"][0], as_json=as_json)


@workflows.command()
@click.argument("file", type=click.File("r", encoding="utf-8"))
@click.option("--name", help="The name, instead of the file's.")
@click.option("--agent", metavar="NAME", help="Whose workflow it is; the default agent's if absent.")
@click.option("--activate", is_flag=True, help="Let it be run at once.")
@managing
def create(file: IO[str], name: str | None, agent: str | None, activate: bool, home: str | None, as_json: bool) -> None:
    """Make a workflow of a JSON file with name, nodes and edges; - is standard input."""
    asked = _object(file.read(), file.name) | given(name=name, agent_id=agent)
    asked.pop("action", None)
    made = _manage(home, "create", **asked)["workflows"][0]
    if activate:
        made |= _manage(home, "activate", workflow_id=made["id"])["workflows"][0] | {"nodes": made["nodes"]}
    _show_workflow(made, as_json=as_json)


@workflows.command()
@click.argument("workflow")
@managing
def activate(workflow: str, home: str | None, as_json: bool) -> None:
    """Let a workflow be run."""
    fields(_manage(home, "activate", workflow_id=workflow)["workflows"][0], as_json=as_json)


@workflows.command()
@click.argument("workflow")
@managing
def pause(workflow: str, home: str | None, as_json: bool) -> None:
    """Let a workflow not be run any more; runs that have begun go on."""
    fields(_manage(home, "pause", workflow_id=workflow)["workflows"][0], as_json=as_json)


@workflows.command()
@click.argument("workflow")
@managing
def delete(workflow: str, home: str | None, as_json: bool) -> None:
    """Remove a workflow with all its runs."""
    fields(_manage(home, "delete", workflow_id=workflow)["workflows"][0], as_json=as_json)


@workflows.command()
@click.argument("workflow")
@click.option("--input", "text", metavar="JSON", help="What the run is given, a JSON object.")
@managing
def run(workflow: str, text: str | None, home: str | None, as_json: bool) -> None:
    """Start a run of an active workflow; a server or worker carries it out."""
    told = None if text is None else _object(text, "--input")
    _show_run(_manage(home, "run", workflow_id=workflow, input=told)["runs"][0], as_json=as_json)


@workflows.command()
@click.argument("workflow")
@managing
def runs(workflow: str, home: str | None, as_json: bool) -> None:
    """List the newest runs of a workflow."""
    found = _manage(home, "runs", workflow_id=workflow)["runs"]
    listing(found, RUN_LINE, as_json=as_json, empty="no runs; start one: rookery workflows run WORKFLOW")


@workflows.command()
@click.argument("run")
@managing
def status(run: str, home: str | None, as_json: bool) -> None:
    """Show a run: its nodes, and how to deliver to those that wait."""
    _show_run(_manage(home, "run_status", run_id=run)["runs"][0], as_json=as_json)


@workflows.command()
@click.argument("run")
@managing
def cancel(run: str, home: str | None, as_json: bool) -> None:
    """End a run now."""
    _show_run(_manage(home, "cancel", run_id=run)["runs"][0], as_json=as_json)


@workflows.command("pause-run")
@click.argument("run")
@managing
def pause_run(run: str, home: str | None, as_json: bool) -> None:
    """Let nothing new begin in a run."""
    _show_run(_manage(home, "pause_run", run_id=run)["runs"][0], as_json=as_json)


@workflows.command("resume-run")
@click.argument("run")
@managing
def resume_run(run: str, home: str | None, as_json: bool) -> None:
    """Let a paused run go on."""
    _show_run(_manage(home, "resume_run", run_id=run)["runs"][0], as_json=as_json)


@workflows.command()
@click.argument("which")
@click.option("--mermaid", "form", flag_value="mermaid", default="mermaid", help="As text for Mermaid; the default.")
@click.option("--svg", "form", flag_value="svg", help="As an SVG document.")
@home_option
def picture(which: str, form: str, home: str | None) -> None:
    """Draw a workflow, or a run with what became of each node."""
    flags = owner_flags(home)
    with opened(flags) as platform:
        graph, states = _drawn(platform, actor_of(platform, flags).tenant, which)
    from rookery.domains.workflows.picture import mermaid, svg

    click.echo((svg if form == "svg" else mermaid)(graph, states))


@workflows.command()
@click.argument("run")
@click.option("--timeout", type=float, help="Give up after so many seconds.")
@home_option
def watch(run: str, timeout: float | None, home: str | None) -> None:
    """Follow a run to its end; exits with 1 unless it completed."""
    flags = owner_flags(home)
    with opened(flags) as platform:
        ended = _followed(platform, actor_of(platform, flags).tenant, run, timeout)
    click.echo(f"{ended.status}{': ' + ended.error if ended.error else ''}")
    if ended.status != "completed":
        raise SystemExit(1)


def _object(text: str, where: str) -> dict[str, Any]:
    try:
        value: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidParams(f"{where} is no JSON: {error}", hint='it must be an object, like {"name": …}') from None
    if not isinstance(value, dict):
        raise InvalidParams(f"{where} is not a JSON object", hint='like {"name": …}')
    return value  # pyright: ignore[reportUnknownVariableType]


def _show_workflow(workflow: Mapping[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(workflow)
        return
    fields({name: value for name, value in workflow.items() if name not in ("nodes", "edges")}, as_json=False)
    listing([{"config": "", **node} for node in workflow["nodes"]], ["id", "type", "label"], as_json=False)
    ways = [f"{edge['sourceNodeId']} → {edge['targetNodeId']}" for edge in workflow["edges"]]
    click.echo(f"ways  {', '.join(ways) or 'none'}")


def _show_run(run: Mapping[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(run)
        return
    shown = ("id", "workflow_id", "name", "status", "error", "started_at", "ended_at")
    fields({name: run[name] for name in shown}, as_json=False)
    nodes = [{"error": None, **node, "output": _compact(node.get("output"))} for node in run["nodes"]]
    listing(nodes, ["id", "type", "status", "error", "output"], as_json=False)
    for each in run["waiting"]:
        click.echo(f"{each['node']} waits: POST {each['path']} with Authorization: Bearer {each['secret']}")


def _compact(value: Any) -> str | None:
    return None if value is None else json.dumps(value, ensure_ascii=False)


def _drawn(platform: "Platform", tenant: str, which: str) -> "tuple[Graph, dict[str, NodeState]]":
    """The graph of a workflow or run, and what its nodes have come to."""
    from rookery.db.tx import Tx
    from rookery.domains.workflows.engine import snapshot_of
    from rookery.domains.workflows.graph import Graph
    from rookery.domains.workflows.run_store import Runs, node_rows, states_of
    from rookery.domains.workflows.store import Workflows

    def look(tx: Tx) -> "tuple[Graph, dict[str, NodeState]]":
        if which.startswith("wfr-"):
            found = Runs(tx, tenant, None).get(which)
            return snapshot_of(found).graph, states_of(node_rows(tx, which))
        row = Workflows(tx, tenant, None).get(which)
        return Graph.model_validate({"nodes": row.nodes, "edges": row.edges}), {}

    return platform.database.direct(look)


def _followed(platform: "Platform", tenant: str, run: str, timeout: float | None) -> Any:
    """The run, once it is over; what its nodes come to is printed as it happens."""
    from rookery.domains.workflows.run_store import Runs, node_rows
    from rookery.domains.workflows.store import OPEN

    began, seen = time.monotonic(), dict[str, str]()
    while True:
        found, rows = platform.database.direct(lambda tx: (Runs(tx, tenant, None).get(run), node_rows(tx, run)))
        for row in sorted(rows, key=lambda row: (row.ended_ms or row.started_ms or 0, row.node_id)):
            if row.status not in ("pending", seen.get(row.node_id)):
                seen[row.node_id] = row.status
                click.echo(f"{row.node_id}  {row.status}{'  ' + row.error if row.error else ''}")
        if found.status not in OPEN:
            return found
        if timeout is not None and time.monotonic() - began > timeout:
            raise TimedOut(f"the run {run} is still {found.status}", hint="is a server or worker running?")
        time.sleep(LOOK_S)

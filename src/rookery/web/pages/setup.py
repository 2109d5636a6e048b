"""The first run: a project, its repository, its gates, and the first agent. Everything can be left and come back to."""

from typing import Any

from starlette.responses import Response

from rookery.cli.connect.clients import CLIENTS
from rookery.cli.connect.servers import Remote
from rookery.core.errors import InvalidParams, ValidationFailed
from rookery.engine.first_run import give_folder, look_at_repository, setup_state
from rookery.web.routing import action, page
from rookery.web.setup_view import Project, chosen_project, connected, guide, server_launch, shown_gates, slug_of, steps
from rookery.web.visit import Visit

DEFAULT_AGENT = "default"
MOST_GATES = 30


@page("/setup")
async def setup(visit: Visit) -> Response:
    """The step that is asked for, or the first that is left to do."""
    return await _shown(visit)


@action("/setup/project")
async def set_project(visit: Visit) -> Response:
    """Make a project with a folder, or give the folder to one that is there."""
    name, path = visit.word("name"), visit.word("path")
    slug = visit.word("slug") or slug_of(name)
    if not slug:
        raise ValidationFailed("the project has no name", hint="give it one with letters or digits")
    if not path:
        raise ValidationFailed("the project has no folder", hint="give the whole path of its repository")
    there = chosen_project((await visit.call(setup_state))["projects"], slug)
    if there is None:
        made = await visit.call("create_project", {"slug": slug, "name": name or slug, "path": path.rstrip("/") or "/"})
    else:
        made = await visit.call(give_folder, {"project": there["slug"], "path": path})
    to = visit.url("/setup", project=made["slug"], step="repository")
    return await visit.done(f"{made['name']} is in {made['path']}.", to=to)


@action("/setup/gates")
async def set_gates(visit: Visit) -> Response:
    """Keep the gates that are chosen."""
    gates: list[dict[str, Any]] = []
    for number in range(MOST_GATES):
        command = visit.word(f"command-{number}")
        if command and visit.word(f"use-{number}"):
            label = visit.word(f"label-{number}") or command.split()[0]
            gates.append({"command": command, "label": label[:100], "required": bool(visit.word(f"required-{number}"))})
    await visit.call("configure_project", {"gates": gates})
    said = f"{len(gates)} gate{'' if len(gates) == 1 else 's'} kept." if gates else "No gates."
    return await visit.done(said, to=visit.url("/setup", step="agent"))


@action("/setup/token")
async def make_token(visit: Visit) -> Response:
    """A token for a client that connects over HTTP. It is shown on this page, once."""
    client, agent = visit.word("client"), visit.word("agent") or DEFAULT_AGENT
    if client not in CLIENTS:
        raise ValidationFailed("there is no such client", hint=f"known: {', '.join(CLIENTS)}")
    wanted = {"name": f"{client}, from the setup page", "agent": agent}
    if visit.project:
        wanted["project"] = visit.project
    made = await visit.call("create_token", wanted)
    return await _shown(visit, step="agent", client=client, agent=agent, token=made["secret"])


async def _shown(visit: Visit, **said: str) -> Response:
    state = await visit.call(setup_state)
    project = chosen_project(state["projects"], visit.project)
    may = await visit.may("create_project")
    look: dict[str, Any] | None = None
    gates: list[dict[str, Any]] = []
    if may and project is not None and project["path"]:
        look = await _look(visit, project["path"])
        gates = (await visit.call("configure_project", {}, project=project["slug"]))["settings"]["gates"]
    sound = look is not None and not look["problem"]
    wanted = said.get("step") or visit.query.get("step", "")
    way = steps(state, project, sound=sound, gates=len(gates), wanted=wanted)
    return await visit.render(
        "setup.html",
        state=state,
        connected=connected(state),
        chosen=project,
        way=way,
        step=next(each.name for each in way if each.current),
        look=look,
        gates=shown_gates(gates, look["gates"] if look else ()),
        may=may,
        **await _connecting(visit, project, said),
    )


async def _look(visit: Visit, path: str) -> dict[str, Any]:
    """What is in a project's folder; what is no folder at all is a problem like others."""
    try:
        return await visit.call(look_at_repository, {"path": path})
    except (InvalidParams, ValidationFailed) as error:
        return {"path": path, "problem": error.message, "remedy": error.hint, "gates": []}


async def _connecting(visit: Visit, project: Project | None, said: dict[str, str]) -> dict[str, Any]:
    """How the chosen client is connected, as the chosen agent."""
    agents = [each["name"] for each in (await visit.call("list_agents"))["agents"]]
    asked = said.get("agent") or visit.query.get("agent", "")
    agent = asked if asked in agents else next(iter(sorted(agents, key=lambda name: name != DEFAULT_AGENT)), "")
    client = said.get("client") or visit.query.get("client", "")
    client = client if client in CLIENTS else next(iter(CLIENTS))
    settings = visit.platform.settings
    slug = None if project is None or project["slug"] == "default" else project["slug"]
    launch = server_launch(settings.home, agent, slug)
    remote = Remote(_address(visit), said.get("token") or "TOKEN")
    return {
        "clients": {name: each.title for name, each in CLIENTS.items()},
        "client": client,
        "agents": agents,
        "agent": agent,
        "by_starting": guide(client, launch, launch, agent, slug),
        "over_http": guide(client, remote, launch, agent, slug) if settings.http_mcp else None,
        "has_token": "token" in said,
        "needs_token": settings.auth_mode == "local",
        "address": remote.url,
    }


def _address(visit: Visit) -> str:
    """Where clients reach MCP: the address that is set, else the one at which the person is."""
    settings, here = visit.platform.settings, visit.request.url
    return (settings.public_url.rstrip("/") or f"{here.scheme}://{here.netloc}") + settings.http_path

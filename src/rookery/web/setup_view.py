"""What the setup page shows: which step comes next, and for each client the exact words that connect it."""

import os
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rookery.cli.connect.clients import CLIENTS, entry_of, own_command
from rookery.cli.connect.plans import snippet_of
from rookery.cli.connect.servers import Launch, Remote, UnusableError, launch_of, running_program

STEPS = {
    "project": "Project",
    "repository": "Repository",
    "gates": "Quality gates",
    "agent": "First agent",
}
CLIENT_DOORS = ("stdio", "http")
"""By which clients of people come. An agent that the platform itself has started comes by another."""
SPARE_GATES = 2
LONGEST_SLUG = 64
Project = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Step:
    """One line of the way. `open`: it can be gone to already."""

    name: str
    title: str
    done: bool
    open: bool
    current: bool


@dataclass(frozen=True, slots=True)
class Guide:
    """How one client is connected: by a command of ours, by its own, or by hand."""

    name: str
    title: str
    command: str
    own_command: str | None
    file: str
    snippet: str
    syntax: str
    notes: Sequence[str]


def steps(state: Mapping[str, Any], project: Project | None, *, sound: bool, gates: int, wanted: str) -> list[Step]:
    """The way, with how far it was gone. Without a wish the first step that is not done is the current one."""
    has_folder = project is not None and bool(project["path"])
    done = {
        "project": project is not None and has_folder,
        "repository": has_folder and sound,
        "gates": gates > 0,
        "agent": bool(connected(state)),
    }
    reachable = {"project": True, "repository": has_folder, "gates": has_folder and sound, "agent": True}
    first = next((name for name in STEPS if not done[name] and reachable[name]), "agent")
    current = wanted if wanted in STEPS and reachable[wanted] else first
    return [Step(name, title, done[name], reachable[name], name == current) for name, title in STEPS.items()]


def connected(state: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The agents that a client has connected, the newest last. That one has run says nothing of that."""
    return [each for each in state["agents"] if each["door"] in CLIENT_DOORS]


def chosen_project(projects: Sequence[Project], wanted: str | None) -> Project | None:
    """The project that is set up: the one that is asked for, else the first with a folder."""
    if wanted is not None:
        return next((each for each in projects if each["slug"].lower() == wanted.lower()), None)
    return next((each for each in projects if each["path"]), None)


def slug_of(name: str) -> str:
    """A short name for addresses and commands, made of what a person calls the project."""
    return re.sub(r"[^a-z0-9._]+", "-", name.lower()).strip("-._")[:LONGEST_SLUG]


def shown_gates(kept: Sequence[Mapping[str, Any]], suggested: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The rows of the form: what is set, what the repository suggests beyond that, and some empty ones."""
    known = {gate["command"] for gate in kept}
    new = [gate for gate in suggested if gate["command"] not in known]
    rows = [{**gate, "because": "", "use": True} for gate in kept]
    rows += [{**gate, "use": not kept} for gate in new]
    empty = {"label": "", "command": "", "required": True, "because": "", "use": False}
    return [*rows, *(dict(empty) for _ in range(SPARE_GATES))]


def server_launch(home: str, agent: str, project: str | None) -> Launch:
    """How a client starts this server's relay: with the installed program, or else with our Python."""
    bound = {"--agent": agent, "--project-id": project}
    environ = {"ROOKERY_HOME": home}
    try:
        return launch_of(running_program(), bound, Path.home(), environ)
    except UnusableError:
        found = launch_of(sys.executable, bound, Path.home(), environ)
        return Launch(sys.executable, ("-m", "rookery.entry", *found.args), found.env)


def guide(name: str, server: Launch | Remote, launch: Launch, agent: str, project: str | None) -> Guide:
    """How this client reaches the server by starting `launch`, or over HTTP if `server` is remote."""
    client = CLIENTS[name]
    scope = "user" if client.user else "project"
    bound = ["--agent", agent, *(["--project-id", project] if project and not isinstance(server, Remote) else [])]
    words = [launch.command, *launch.args[: launch.args.index("stdio")], "connect", name, *bound]
    prefix = "".join(f"{key}={shlex.quote(value)} " for key, value in launch.env.items())
    over_http = " --http" if isinstance(server, Remote) else ""
    notes = [note for note in (client.note, client.project_note if scope == "project" else "") if note]
    return Guide(
        name=name,
        title=client.title,
        command=f"{prefix}{shlex.join(words)}{over_http}",
        own_command=own_command(name, scope, server),
        file=os.path.join("~", client.user) if client.user else client.project,
        snippet=snippet_of(client, (client.key,), entry_of(client, server)),
        syntax="TOML" if client.syntax == "toml" else "JSON",
        notes=notes,
    )

"""What has to be known of a client program to let it do one turn: how it is started, and how its output is read."""

import json
import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from rookery.core.actor import Mode
from rookery.core.errors import ConfigurationError
from rookery.lifecycle.leftovers import RUN_MARK
from rookery.lifecycle.session_mark import marked
from rookery.relay import SESSION_KEY
from rookery.runtimes.command_reading import Reader, Wanted
from rookery.sessions.port import OURS, Host, Launch

Server = Mapping[str, Any]
SCOPE_FILE = "ROOKERY_TOOL_SCOPE_FILE"
"""Where a program finds the path of the file with the tools that its session is held to, if it is held to any."""
KEPT = (
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy",
    "all_proxy", "no_proxy",
)  # fmt: skip
_KEPT_FAMILIES = ("LC_", "XDG_")
_SWITCHES = {"NO_COLOR": "1", "GIT_TERMINAL_PROMPT": "0"}
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One message to a client program."""

    launch: Launch
    mode: Mode
    prompt: str
    folder: Path
    """For the files of this turn; nobody else can enter it, and it is gone afterwards."""
    servers: Mapping[str, Server]
    """The MCP servers of the session, ours among them, each as in the `mcpServers` of a client."""
    scope_file: Path | None = None
    """The tools of ours that the session is held to, as `--tool-scope-file` takes them; None if it is held to none."""
    native_id: str | None = None
    """What the client calls the session, if it is to go on with one."""
    before: tuple[int, int] | None = (0, 0)
    """The tokens, taken and given, that the session had used before; None if that is not known."""

    @property
    def allowed(self) -> Sequence[str]:
        """Tools of other servers for which nobody has to be asked."""
        return self.launch.allowed if self.mode != "ask" else ()

    @property
    def whole_prompt(self) -> str:
        """For clients that have no other place for what an agent is told beyond its first message."""
        told = self.launch.instructions.strip()
        return f"{told}\n\n{self.prompt}" if told and self.native_id is None else self.prompt


@dataclass(frozen=True, slots=True, kw_only=True)
class Invocation:
    """How the program is started for a turn. No secret is among the words: everybody can list them."""

    words: Sequence[str]
    input: bytes = b""
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    asks: bool = False
    """Whether it asks on its output and waits for answers on its input, which stays open until the turn is over."""


class Client(Protocol):
    """A client program. `name` is the runtime's."""

    @property
    def name(self) -> str: ...

    @property
    def title(self) -> str: ...

    @property
    def program(self) -> str:
        """What is looked for on the PATH, unless it is a path."""
        ...

    @property
    def install(self) -> str:
        """What to do if it is not there."""
        ...

    @property
    def variables(self) -> Sequence[str]:
        """The variables that it needs of ours: names, and beginnings of names that end in `_`."""
        ...

    def invocation(self, turn: Turn) -> Invocation: ...

    def reader(self, turn: Turn) -> Reader: ...

    async def reply(self, wanted: Wanted, host: Host, allowed: Sequence[str]) -> bytes:
        """What a program that asks is told. Only for those whose invocation says that they do."""
        ...


class AsksNobody:
    """A client that has no way to ask while it works."""

    async def reply(self, wanted: Wanted, host: Host, allowed: Sequence[str]) -> bytes:
        return b""


def environment(
    client: Client, environ: Mapping[str, str], session: str, mark: str, scope_file: Path | None = None
) -> dict[str, str]:
    """What the program sees of ours: where it runs, the way to its model, the marks of its session, no other secret."""
    names = {*KEPT, *(each for each in client.variables if not each.endswith("_"))}
    families = (*_KEPT_FAMILIES, *(each for each in client.variables if each.endswith("_")))
    kept = {name: value for name, value in environ.items() if name in names or name.startswith(families)}
    kept.pop(SESSION_KEY, None)
    held = {} if scope_file is None else {SCOPE_FILE: str(scope_file)}
    return marked({**kept, **_SWITCHES, **held, RUN_MARK: mark}, session)


def our_server(home: str, launch: Launch, mark: str, environ: Mapping[str, str]) -> Server:
    """Our own MCP server as the client starts it. By the key it knows the session, whatever else the client says."""
    env = marked({"ROOKERY_HOME": home, RUN_MARK: mark}, launch.session)
    if launch.pass_key:
        env[SESSION_KEY] = launch.pass_key
    return {"type": "stdio", "command": sys.executable, "args": [*_entry(environ), "stdio", "--attach"], "env": env}


def _entry(environ: Mapping[str, str]) -> list[str]:
    """How our Python is told to run us. Some clients hand no PYTHONPATH on.

    Without the folder that it is started in: that is the agent's, and a file there that has the name of a module would
    be run instead of it.
    """
    roots = [each for each in environ.get("PYTHONPATH", "").split(os.pathsep) if each]
    if not roots:
        return ["-P", "-m", "rookery.entry"]
    return ["-P", "-c", f"import sys; sys.path[:0] = {roots!r}; from rookery.entry import main; main()"]


def all_servers(home: str, launch: Launch, mark: str, environ: Mapping[str, str]) -> dict[str, Server]:
    """The MCP servers of a session. A name that is ours, or that a client could take for something else, is refused."""
    for name in launch.servers:
        if name == OURS or not _NAME.fullmatch(name):
            raise ConfigurationError(f"no MCP server can be called {name[:100]!r}", hint="letters, digits, - and _")
    return {**launch.servers, OURS: our_server(home, launch, mark, environ)}


def write_private(path: Path, content: str) -> Path:
    """A new file that only we can read."""
    with open(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(content)
    return path


def write_scope_file(folder: Path, launch: Launch) -> Path | None:
    """The tools of ours that the session is held to, for a program that serves itself; None if it is held to none.

    Whoever attaches itself to the session needs no such file: the session itself is held to them at every call.
    """
    held = launch.actor.scope_file
    return None if held is None else write_private(folder / "tools.json", json.dumps(sorted(held)))


def tools_of(server: str, allowed: Sequence[str]) -> list[str]:
    """Those of the allowed tools that are of this server, by the server's own names."""
    start = f"mcp__{server}__"
    return [name.removeprefix(start) for name in allowed if name.startswith(start)]

"""What a client is told to use: a program that it starts, or an address that it reaches over HTTP."""

import os
import re
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

NAME = "rookery"
# As in identity.store, which is too heavy to import here; a test compares them.
DEFAULT_AGENT = "default"
# A server that listens on all addresses is reached on this one.
EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}


class UnusableError(Exception):
    """The file cannot take the entry, or the launch cannot be written down; nothing was changed."""


class Launch(NamedTuple):
    """The process that a client starts for its session: absolute program, arguments, added environment."""

    command: str
    args: tuple[str, ...] = ("stdio",)
    env: Mapping[str, str] = MappingProxyType({})


class Remote(NamedTuple):
    """A running server. `token` is empty where no client needs one of ours."""

    url: str
    token: str = ""

    @property
    def authorization(self) -> str:
        return f"Bearer {self.token}"


def launch_of(command: str, bound: Mapping[str, str | None], home: Path, environ: Mapping[str, str]) -> Launch:
    """How a client starts this program with these flags, on the home folder of this environment."""
    for flag, value in bound.items():
        if value is not None and (not value or value.startswith("-")):
            raise UnusableError(f"{flag} wants a name, not {value!r}")
    args = [word for flag, value in bound.items() if value is not None for word in (flag, value)]
    default = os.path.abspath(home / ".rookery")
    chosen = os.path.abspath(os.path.expanduser(environ.get("ROOKERY_HOME") or default))
    env = {"ROOKERY_HOME": chosen} if chosen != default else {}
    launch = Launch(os.path.abspath(command), ("stdio", *args), env)
    _check_words(launch.command, *args, *env.values())
    return launch


def _check_words(*words: str) -> None:
    for word in words:
        # Clients replace `$NAME`, `${NAME}` and `{env:NAME}` before they use an entry.
        if re.search(r"[\x00-\x1f\x7f\ud800-\udfff$]|\{(env|file):", word):
            raise UnusableError(f"a client would not pass {word!r} on as it is written")


def running_program() -> str:
    """The program that is running, as a client can start it from any folder."""
    for candidate in (sys.argv[0], os.path.join(os.path.dirname(sys.executable), NAME)):
        if os.path.basename(candidate) == NAME and os.path.isfile(candidate):
            return os.path.abspath(candidate)
    raise UnusableError(f"cannot tell where the {NAME} program is; name it with --command")


def address_of(environ: Mapping[str, str], url: str | None = None) -> tuple[str, bool]:
    """Where the server of this home answers clients, unless `url` says it, and whether it wants a token of ours."""
    from rookery.server.address import running_port
    from rookery.settings import load_settings

    settings = load_settings(environ=environ)
    wants_token = settings.auth_mode == "local"
    if url:
        if not re.match(r"https?://[^/\s]", url):
            raise UnusableError(f"--url wants an http or https address, not {url!r}")
        _check_words(url)
        return url, wants_token
    if not settings.http_mcp:
        raise UnusableError("the settings say that this server does not speak MCP over HTTP (http_mcp)")
    port = running_port(settings.home) or settings.port
    if not settings.public_url and not port:
        raise UnusableError("the settings leave the port open (0); name the address with --url")
    host = EVERYWHERE.get(settings.host, f"[{settings.host}]" if ":" in settings.host else settings.host)
    origin = settings.public_url.rstrip("/") or f"http://{host}:{port}"
    return origin + settings.http_path, wants_token


def token_command(launch: Launch, client: str, agent: str | None) -> str:
    """The command that prints a new token for sessions of this agent."""
    prefix = "".join(f"{key}={shlex.quote(value)} " for key, value in launch.env.items())
    return prefix + shlex.join([launch.command, "token", "create", client, "--agent", agent or DEFAULT_AGENT])


class Token(NamedTuple):
    """A token that was made for a client."""

    id: str
    secret: str


def make_token(client: str, agent: str | None) -> Token:
    """A new token with which a client acts as this agent, never as the owner."""
    from rookery.cli.session import call_as_owner

    made = call_as_owner(None, "create_token", {"name": client, "agent": agent or DEFAULT_AGENT})
    return Token(made["id"], made["secret"])


def revoke_token(token: Token) -> None:
    """End a token that was not needed after all."""
    from rookery.cli.session import call_as_owner

    call_as_owner(None, "revoke_token", {"id": token.id})

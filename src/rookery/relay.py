"""`rookery stdio`: joins one agent's stdin and stdout to the running server, or serves in this process.

Every agent session starts one, so its start and memory count: this file, relay_wire and relay_pump import
nothing but C modules. Where Python alone takes 12 ms and 8.7 MB, `socket` would add 7 ms and 1.3 MB,
`json` 3 ms and 1 MB.
"""

import os
import sys

Flags = dict[str, str | bool]

SESSION_MARK = "ROOKERY_SESSION"
"""In the environment of every process that runs for an agent's session."""

SESSION_KEY = "ROOKERY_SESSION_KEY"
"""Where `--attach` finds the key of the session. A command line can be read by everybody on the machine."""

FLAGS: dict[str, tuple[bool, str]] = {
    "--issue-id": (True, "The issue that this session works on."),
    "--db": (True, "The database; a server on another database is not used."),
    "--project-id": (True, "The project that every call is bound to."),
    "--worktree-path": (True, "The working copy of the code that the tools may read."),
    "--agent-type": (True, "The profile whose tools the session gets."),
    "--tool-scope-file": (True, "A file with the tools that the session gets; it overrides --agent-type."),
    "--project-slug": (True, "The short name of the project, instead of its id."),
    "--symphony-dir": (True, "The folder with the project's workflow files."),
    "--agent": (True, "The agent that acts; the default agent if absent."),
    "--session-id": (True, "The session that the calls are recorded under."),
    "--depth": (True, "How many agents stand between this session and the person who started it."),
    "--source": (True, "What started the session, such as agent, slack or web (which counts for people only)."),
    "--scheduler": (False, "The session was started by a schedule, so some tools are blocked."),
    "--as-owner": (False, "Act as the owner of the home folder, with all tools."),
    "--attach": (False, "Act in the session whose key is in $ROOKERY_SESSION_KEY, with what it is held to."),
    "--home": (True, "The home folder of Rookery; $ROOKERY_HOME or ~/.rookery if absent."),
    "--direct": (False, "Serve in this process even if a server is running."),
}

BESIDE_ATTACH = frozenset({"attach", "db", "direct", "home"})
"""The session says all else about itself."""


class UsageError(Exception):
    """The command line is wrong; the message is one sentence for the person who typed it."""


def parse_flags(arguments: list[str]) -> Flags:
    """The flags by name with underscores. No value may be empty: an unset variable must not widen a scope."""
    flags: Flags = {}
    rest = list(reversed(arguments))
    while rest:
        name, equals, value = rest.pop().partition("=")
        if name not in FLAGS:
            kind = "flag" if name.startswith("-") else "argument"
            raise UsageError(f"unknown {kind} {name!r}; `rookery stdio --help` lists the flags")
        takes_value = FLAGS[name][0]
        if equals and not takes_value:
            raise UsageError(f"{name} takes no value")
        if takes_value and not equals and rest and not rest[-1].startswith("--"):
            value = rest.pop()
        if takes_value and not value:
            raise UsageError(f"{name} needs a value")
        flags[name[2:].replace("-", "_")] = value if takes_value else True
    return flags


def with_key(flags: Flags, key: str | None) -> Flags:
    """The flags with the session's key in place of a bare `--attach`."""
    if not flags.get("attach"):
        return flags
    other = next((name for name in flags if name not in BESIDE_ATTACH), None)
    if other is not None:
        raise UsageError(f"--{other.replace('_', '-')} cannot be beside --attach: the session itself says it")
    if not key:
        raise UsageError(f"--attach needs the key of a session in ${SESSION_KEY}")
    return {**flags, "attach": key}


def home_path(flags: Flags) -> str:
    """The absolute home folder: --home, else $ROOKERY_HOME, else ~/.rookery."""
    home = flags.get("home") or os.environ.get("ROOKERY_HOME") or "~/.rookery"
    return os.path.abspath(os.path.expanduser(str(home)))


def socket_path(home: str) -> str:
    """Where the server of this home listens. Systems allow 100 bytes or so; a deep home gets a stand-in."""
    path = os.path.join(home, "rookery.sock")
    if len(os.fsencode(path)) <= 100:
        return path
    from hashlib import sha256

    return f"/tmp/rookery-{os.geteuid()}/{sha256(os.fsencode(home)).hexdigest()[:16]}.sock"


def main(arguments: list[str]) -> int:
    """Serve one MCP session on stdin and stdout until the client ends it; returns the exit code."""
    # Nothing that this process starts has to know it.
    key = os.environ.pop(SESSION_KEY, None)
    try:
        flags = with_key(parse_flags(arguments), key)
        # A closed descriptor's number would be given to the socket.
        if sys.stdin is None or sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison]
            raise UsageError("stdin and stdout must be open")
        # The server looks more closely; this is for systems that do not tell it who asks.
        if flags.get("as_owner") and SESSION_MARK in os.environ:
            raise UsageError("this runs in an agent's session, so it cannot act as the owner")
    except UsageError as error:
        complain(str(error))
        return 2
    if not flags.get("direct"):
        try:
            code = relayed(flags)
        except KeyboardInterrupt:
            return 130
        if code is not None:
            return code
    import gc

    # Loading the server makes a lot of objects and no garbage; the server turns the collector on again.
    gc.disable()
    from rookery.server.stdio import serve_direct

    return serve_direct(flags)


def relayed(flags: Flags) -> int | None:
    """The exit code of a session that the running server took, or None if this process has to serve."""
    from rookery.relay_pump import Pump
    from rookery.relay_wire import RefusedError, dial, greeting

    path, hello = socket_path(home_path(flags)), greeting(flags)
    try:
        sock, received = dial(path, hello)
    except RefusedError as refused:
        complain(f"{refused} (serving in this process instead)" if refused.fallback else str(refused))
        return None if refused.fallback else 2
    except (FileNotFoundError, ConnectionRefusedError):
        return None
    except OSError as error:
        complain(f"{path}: {error} (serving in this process instead)")
        return None
    try:
        Pump(path, hello, sock, received).run()
    except ConnectionError:
        return 0  # the client reads no more
    except OSError as error:
        complain(f"stdout: {error}")
        return 1
    return 0


def complain(sentence: str) -> None:
    """Tell the person on stderr, if anyone listens there."""
    # print() would write to stdout, which is the protocol's, if stderr is closed.
    if sys.stderr is not None:  # pyright: ignore[reportUnnecessaryComparison]
        try:
            sys.stderr.write(f"rookery stdio: {sentence}\n")
        except OSError:
            return

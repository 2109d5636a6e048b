"""A program of the owner's own: a command line with places for the prompt and the MCP configuration."""

import json
import shlex
from collections.abc import Sequence

from rookery.core.errors import ConfigurationError
from rookery.runtimes.command_client import AsksNobody, Invocation, Turn, write_private
from rookery.runtimes.command_reading import MOST_SAID, Reader, said
from rookery.sessions.events import SessionEvent

PROMPT = "{prompt}"
SERVERS = "{mcp_config}"
MODE = "{mode}"
SCOPE_FILE = "{scope_file}"
MOST_ARGUMENT = 100_000


class OwnCommand(AsksNobody):
    """`{mcp_config}` is a file with `mcpServers`, `{mode}` ask, act or autonomy, `{prompt}` what the agent is told.

    `{scope_file}` is a file with the tools that the session is held to, for a program that serves itself; empty if it
    is held to none, as sessions are that people open.
    Without `{prompt}` the program reads that from its standard input: others can read its words, and they cannot be
    long. What it prints is what the agent says. It remembers nothing from turn to turn.
    """

    name = "command"
    title = "The command"
    install = "name a program that is there in runtime_command"
    variables: Sequence[str] = ()

    def __init__(self, line: str) -> None:
        try:
            self._words = shlex.split(line)
        except ValueError as error:
            raise ConfigurationError(f"runtime_command cannot be read: {error}", hint="close every quote") from error
        if not self._words:
            raise ConfigurationError("runtime_command is empty", hint="name the program that is the agent")

    @property
    def program(self) -> str:
        return self._words[0]

    def invocation(self, turn: Turn) -> Invocation:
        held = "" if turn.scope_file is None else str(turn.scope_file)
        places = {SERVERS: str(turn.folder / "mcp.json"), MODE: turn.mode, SCOPE_FILE: held}
        spoken = any(PROMPT in word for word in self._words[1:])
        if spoken:
            if len(turn.whole_prompt.encode(errors="replace")) > MOST_ARGUMENT or "\0" in turn.whole_prompt:
                raise ConfigurationError(
                    "the message is too long for a command line", hint="leave {prompt} out and read standard input"
                )
            places[PROMPT] = turn.whole_prompt
        write_private(turn.folder / "mcp.json", json.dumps({"mcpServers": dict(turn.servers)}))
        words = [self._words[0], *(_filled(word, places) for word in self._words[1:])]
        return Invocation(words=words, input=b"" if spoken else turn.whole_prompt.encode(errors="replace"))

    def reader(self, turn: Turn) -> "OwnReader":
        return OwnReader(native_id=turn.native_id)


def _filled(word: str, places: dict[str, str]) -> str:
    """The word with its places filled, each once: what is put in may look like a place itself."""
    for place, value in places.items():
        before, found, after = word.partition(place)
        if found:
            return _filled(before, places) + value + _filled(after, places)
    return word


class OwnReader(Reader):
    ends_turns = False

    def read(self, line: str) -> list[SessionEvent]:
        more = f"{line.rstrip(chr(13))}\n"
        self.tally.said = (self.tally.said + more)[-MOST_SAID:]
        return [said(more)]

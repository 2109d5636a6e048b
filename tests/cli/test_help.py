"""Help comes at once: nothing of the product is imported for it."""

import subprocess
import sys
from collections.abc import Iterator

import click
import pytest

from rookery import __version__, relay
from rookery.cli.main import COMMANDS, rookery
from tests.cli.terminal import LIMIT_S, Terminal

HEAVY = {"pydantic", "sqlalchemy", "mcp", "rich", "psycopg", "starlette", "uvicorn", "asyncio.base_events"}
ASK_FOR_HELP = """
import sys
from click.testing import CliRunner
from rookery.cli.main import rookery
for words in {paths!r}:
    result = CliRunner().invoke(rookery, [*words, "--help"])
    assert result.exit_code == 0, (words, result.output)
print(*sorted({heavy!r} & sys.modules.keys()))
print(*sorted(name for name in sys.modules if name.startswith("rookery.cli.")))
"""


def paths(command: click.Command, words: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The words of every command below this one, and of itself."""
    yield words
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from paths(found, (*words, name))


def modules_after_help(terminal: Terminal, wanted: list[tuple[str, ...]]) -> tuple[list[str], list[str]]:
    """Which heavy modules, and which of ours, are loaded once the help of these commands was shown."""
    done = subprocess.run(
        [sys.executable, "-c", ASK_FOR_HELP.format(paths=wanted, heavy=HEAVY)],
        env=terminal.full_environ(),
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=True,
    )
    heavy, ours = done.stdout.splitlines()
    return heavy.split(), ours.split()


def test_the_help_of_no_command_imports_a_heavy_library(terminal: Terminal) -> None:
    assert modules_after_help(terminal, list(paths(rookery)))[0] == []


def test_the_list_of_commands_imports_no_command(terminal: Terminal) -> None:
    assert modules_after_help(terminal, [()])[1] == ["rookery.cli.failure", "rookery.cli.main"]


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_says_of_a_command_what_its_own_help_says(name: str) -> None:
    command = rookery.get_command(click.Context(rookery), name)
    assert command is not None
    assert command.name == name
    assert " ".join((command.help or "").partition("\n\n")[0].split()) == COMMANDS[name][1]


def test_every_option_says_what_it_does() -> None:
    silent: list[str] = []
    for words in paths(rookery):
        command: click.Command | None = rookery
        for word in words:
            assert isinstance(command, click.Group)
            command = command.get_command(click.Context(command), word)
        assert command is not None
        silent += [
            f"{' '.join(words)} {option.opts[0]}"
            for option in command.params
            if isinstance(option, click.Option) and not option.help
        ]
    assert silent == []


def test_the_help_of_stdio_names_every_flag_of_the_relay(terminal: Terminal) -> None:
    shown = terminal.ok("stdio", "--help")
    assert [flag for flag in relay.FLAGS if flag not in shown] == []
    assert terminal.process("stdio", "-h").stdout == terminal.process("stdio", "--help").stdout != ""


def test_the_version_is_that_of_the_package(terminal: Terminal) -> None:
    assert __version__ in terminal.ok("--version")

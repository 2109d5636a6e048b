"""The `rookery` command line. A command's module is imported when that command runs or its help is asked for."""

import importlib

import click

from rookery import __version__
from rookery.cli.failure import Failure, known_error

# In the order in which a newcomer needs them; a test compares each sentence with the command's own help.
COMMANDS: dict[str, tuple[str, str]] = {
    "up": ("up", "Start the server on this machine and keep it running."),
    "login": ("login", "Print a link that opens the console and signs its browser in."),
    "people": ("people", "People, what each of them may do, and where they are signed in."),
    "connect": ("connect", "Let a client start `rookery stdio` for its sessions, by adding to its configuration."),
    "demo": (
        "demo",
        "Watch scripted agents take an issue from a request to a merged change, on a repository of their own.",
    ),
    "stdio": ("stdio", "Serve one MCP session on standard input and output."),
    "tools": ("tools", "List the tools that a session would see."),
    "explain": ("explain", "Say why a session has a tool or not, layer by layer."),
    "call": ("call", "Call a tool and print its result as JSON."),
    "agents": ("agents", "Agents and what each of them may do."),
    "profiles": ("profiles", "Profiles, the agent types, and the tools that each keeps."),
    "bundles": ("bundles", "Bundles of tools that agents and projects share."),
    "grants": ("grants", "Single tools that the owner gave to single agents."),
    "token": ("token", "Bearer tokens for clients that connect over HTTP."),
    "projects": ("projects", "Projects that sessions are bound to."),
    "issues": ("issues", "Issues of a project, and moving them on."),
    "merge": ("merge", "Merge an approved pull request into its base branch, in the project's folder."),
    "publish": ("merge", "Push the branch of a pull request, and open it on GitHub."),
    "intake": ("intake", "Raw requests, and the issues that agents make of them."),
    "asks": ("asks", "What agents ask you, and how to answer."),
    "answer": ("asks", "Answer an agent: by the number of an option, or in your own words."),
    "sessions": ("sessions", "Sessions of agents: open one, talk to it, watch it, end it."),
    "transcripts": ("transcripts", "Transcripts of Claude Code on this machine, to be read."),
    "memory": ("memory", "Memories of agents, and the key that seals them."),
    "knowledge": ("knowledge", "Documents of a project that agents can search."),
    "schedules": ("schedules", "Schedules of agents, and what awaits approval."),
    "work": ("work", "Work tasks of agents, and how their work is checked."),
    "health": ("health", "The health of a project's code: probes, counts and trends."),
    "workflows": ("workflows", "Workflows of agents, and their runs."),
    "orchestrator": ("orchestrator", "Agents that work on issues by themselves: what goes on, and how."),
    "pause": ("pause", "Stop all agents, or those of a project, or one, until they are resumed."),
    "resume": ("pause", "Let agents go on that were paused; whatever else is paused stays so."),
    "jobs": ("jobs", "Deferred work: what waits, what runs, and how it ended."),
    "worker": ("worker", "Do deferred work, on this machine or any other that reaches the database."),
    "migrate": ("migrate", "Bring the database up to date, after a backup."),
    "backup": ("backup", "Copy the database to a file."),
    "restore": ("backup", "Replace the database by a backup; what was there is kept."),
    "audit": ("audit", "The record of every call."),
    "verify-attestation": (
        "attestations",
        "Verify a log of attestations, from a file or an address; exit with 1 if it does not hold.",
    ),
    "doctor": ("doctor", "Check the installation and say how to mend it."),
}


class LazyGroup(click.Group):
    """A group whose commands are imported one by one, so that help never waits for the whole product."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"rookery.cli.{COMMANDS[cmd_name][0]}")
        return getattr(module, cmd_name.replace("-", "_"))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in COMMANDS.items()])

    def invoke(self, ctx: click.Context) -> object:
        """Run the command; what a person can mend is one sentence and a hint on stderr, with exit code 1."""
        try:
            return super().invoke(ctx)
        except Exception as error:
            known = known_error(error)
            if known is None:
                raise
            raise Failure(known) from error


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="rookery")
def rookery() -> None:
    """One identity, one scoped set of tools, one record and one person to ask, for every agent of a fleet.

    `rookery up` starts the server, `rookery connect claude` lets an agent use it.
    """


def main() -> None:
    """Run the command in sys.argv and exit with its code."""
    rookery(prog_name="rookery")


if __name__ == "__main__":
    main()

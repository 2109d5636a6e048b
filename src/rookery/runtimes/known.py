"""The runtimes that a platform has, by name."""

from typing import TYPE_CHECKING

from rookery.sessions.port import AgentRuntime

if TYPE_CHECKING:
    from rookery.app import Platform


def known_runtimes(platform: "Platform") -> dict[str, AgentRuntime]:
    """All of them, if the setting `runtime` names one; where it names none, no agent is started.

    One that is not installed is among them: it says what is missing when it is wanted.
    """
    if platform.settings.runtime == "none":
        return {}
    # Whoever starts no agents does not wait for what only agents need.
    from rookery.runtimes.claude import ClaudeRuntime
    from rookery.runtimes.command import CLIENTS, command_runtime
    from rookery.runtimes.command_own import OwnCommand
    from rookery.runtimes.scripted import Scripted

    settings = platform.settings
    named = [*CLIENTS, *([OwnCommand.name] if settings.runtime_command else [])]
    commands = [command_runtime(name, settings.home, settings.runtime_command) for name in named]
    runtimes: list[AgentRuntime] = [Scripted(platform), ClaudeRuntime(platform), *commands]
    return {runtime.name: runtime for runtime in runtimes}

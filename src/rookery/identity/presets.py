"""The preset bundles. Which tools are in one is declared by the tools themselves (`bundles=` of `@tool`)."""

from typing import NamedTuple


class Preset(NamedTuple):
    id: str
    name: str
    description: str


PRESETS: dict[str, Preset] = {
    preset.id: preset
    for preset in (
        Preset("preset-code-reviewer", "Code reviewer", "Reads, reviews and comments on pull requests"),
        Preset("preset-devops", "DevOps", "Starts work tasks, forks and opens pull requests"),
        Preset("preset-researcher", "Researcher", "Searches the web and remembers what it found"),
        Preset("preset-communicator", "Communicator", "Finds and talks to other agents"),
        Preset("preset-analyst", "Analyst", "Watches health, reputation and repositories"),
        Preset("preset-coder", "Coder", "For agents whose runtime brings file and shell tools"),
        Preset("preset-github-ops", "GitHub operations", "Works with pull requests and issues on GitHub"),
        Preset("preset-full-stack", "Full stack", "From a question on the web to a pull request"),
        Preset("preset-memory-manager", "Memory manager", "Keeps memories in order and researches"),
    )
}


def find_preset(name_or_id: str) -> str | None:
    """The id of the preset that is meant: `preset-devops`, `devops` or `DevOps`."""
    for preset in PRESETS.values():
        if name_or_id in (preset.id, preset.id.removeprefix("preset-"), preset.name):
            return preset.id
    return None

"""What tools say of themselves while they work, whoever calls them."""

from collections import defaultdict
from collections.abc import Mapping

from rookery.core.actor import Actor
from tests.platform_fixtures import Fleet


def statuses_of(fleet: Fleet) -> Mapping[str, list[str]]:
    """The lines that are shown from now on, by tool."""
    heard: dict[str, list[str]] = defaultdict(list)

    def hear(actor: Actor, tool: str, text: str) -> None:
        heard[tool].append(text)

    fleet.platform.calls.tap = hear
    return heard

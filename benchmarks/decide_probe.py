"""Times `decide` in this process and prints the figures as JSON: `python decide_probe.py ROUNDS`."""

import json
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import replace

from rookery.core.actor import Actor
from rookery.core.decide import decide
from rookery.core.registry import Registry
from rookery.core.tool import Tool
from rookery.plugins import load_domains


def actors(registry: Registry) -> list[Actor]:
    """Actors that are stopped at the first layers, at the last, and at none."""
    names = frozenset(tool.name for tool in registry)
    half = frozenset(sorted(names)[::2])
    agent = Actor(kind="agent", tenant="t", subject="a", agent="a", project="p", issue="i")
    listed = replace(agent, permissions=names)
    worker = replace(agent, profile="worker", bundle_tools=half, allowed=names, scope_file=names)
    return [
        Actor(kind="human", tenant="t", subject="owner", role="owner", source="web"),
        Actor(kind="human", tenant="t", subject="viewer", role="viewer", source="web"),
        Actor(kind="external", tenant="t", subject="peer", source="http", scopes=frozenset({"system:read"})),
        agent,
        listed,
        replace(agent, permissions=half, grants=names, scopes=frozenset({"*"})),
        worker,
        replace(worker, profile="judge", phase="review", depth=2, source="agent", restrict_networking=True),
        replace(listed, scheduler=True, unattended=True, mode="ask"),
        replace(listed, mode="act", trust=3, exhausted=frozenset({"messages"})),
    ]


def timed(action: Callable[[], object]) -> int:
    """Nanoseconds of one call."""
    started = time.perf_counter_ns()
    action()
    return time.perf_counter_ns() - started


def each_decision(people: list[Actor], tools: list[Tool], rounds: int) -> list[int]:
    clock = time.perf_counter_ns
    took: list[int] = []
    for _ in range(rounds):
        for actor in people:
            for tool in tools:
                started = clock()
                decide(actor, tool)
                took.append(clock() - started)
    return took


def main(rounds: int) -> None:
    registry = load_domains(plugins=False).registry
    tools = list(registry)
    if not tools:
        sys.exit("no domain declares a tool")
    people = actors(registry)
    # The same number of decisions whether there are three tools or a hundred.
    rounds = max(1, rounds * 10 // len(tools))
    each_decision(people, tools, 1)
    took = sorted(each_decision(people, tools, rounds))
    listings = [timed(lambda actor=actor: registry.listed(actor)) for actor in people * 20]
    figures = {
        "tools": len(tools),
        "actors": len(people),
        "decisions": len(took),
        "p50_us": took[len(took) // 2] / 1000,
        "p99_us": took[len(took) * 99 // 100] / 1000,
        "max_us": took[-1] / 1000,
        "listing_us": statistics.median(listings) / 1000,
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main(int(sys.argv[1]))

"""Random actors and tools for comparing two answers to the same question, biased so that every layer gets to speak."""

import random
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from rookery.core.actor import Actor
from rookery.core.tool import PROFILES, Tool
from rookery.domains.system.tools import ping

SPACES = ("tracker", "memory", "github", "credits", "identity")
ACTIONS = tuple(f"{space}:{verb}" for space in SPACES for verb in ("read", "write"))
SERVICES = ("work_tasks", "code_index", "mail")
PHASES = ("research", "architecture", "grooming", "ready")
BUDGETS = ("credits", "messages", "searches")
SOURCES = ("web", "cli", "stdio", "http", "agent", "algochat", "telegram", "discord", "slack")


class Cases:
    """Makes tools and actors from one seed: the same seed gives the same cases."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)

    def rarely(self, value: Any, otherwise: Any = None, chance: float = 0.12) -> Any:
        return value if self.dice.random() < chance else otherwise

    def some(self, values: Iterable[str], share: float) -> frozenset[str]:
        return frozenset(value for value in values if self.dice.random() < share)

    def tools(self, count: int) -> list[Tool]:
        return [self.tool(f"tool_{number}") for number in range(count)]

    def tool(self, name: str) -> Tool:
        dice = self.dice
        return replace(
            ping,
            name=name,
            right=name,
            effect=dice.choice(("read", "read", "write", "external")),
            tier=dice.choices(("observe", "act", "destructive", "privileged"), (4, 4, 1, 2))[0],
            profiles=self.some(PROFILES.values(), 0.6),
            default=dice.random() < 0.7,
            principals=self.rarely(dice.choice(("people", "people", "operators", "everyone")), "any"),
            scopes=(dice.choice(ACTIONS), *self.some((*ACTIONS, "admin"), 0.05)),
            requires=self.rarely(dice.choice(SERVICES)),
            needs=self.rarely(dice.choice(SERVICES), chance=0.25),
            scheduler_blocked=dice.random() < 0.2,
            interactive=dice.random() < 0.15,
            networking=dice.random() < 0.3,
            max_depth=self.rarely(dice.randint(1, 4), chance=0.2),
            binds=dice.choices((None, "issue", "project"), (5, 1, 1))[0],
            phases=self.rarely(self.some(PHASES, 0.5), chance=0.25),
            min_trust=self.rarely(dice.randint(1, 4), 0),
            budget=self.rarely(dice.choice(BUDGETS), chance=0.3),
        )

    def actors(self, count: int, names: Sequence[str]) -> list[Actor]:
        pool = [self.some(names, share) for share in (0, 0.03, 0.2, 0.5, 0.8, 0.95, 1) for _ in range(6)]
        return [self.actor(pool) for _ in range(count)]

    def actor(self, pool: Sequence[frozenset[str]]) -> Actor:
        dice = self.dice
        kind = dice.choices(("agent", "human", "external"), (6, 3, 1))[0]
        return Actor(
            kind=kind,
            tenant="default",
            subject="someone",
            role=dice.choice(("owner", "operator", "viewer", None)) if kind == "human" else None,
            profile=self.rarely(dice.choice(list(PROFILES.values())), chance=0.4),
            project=self.rarely(None, "prj-1"),
            issue=self.rarely("iss-1", chance=0.6),
            phase=self.rarely(dice.choice(PHASES), chance=0.3),
            depth=dice.choices((1, 2, 3, 4), (6, 2, 1, 1))[0],
            source=dice.choice(SOURCES),
            scheduler=dice.random() < 0.25,
            unattended=dice.random() < 0.25,
            mode=dice.choice(("ask", "act", "autonomy", "autonomy")),
            trust=dice.choice((None, 0, 1, 2, 3, 4, 4)),
            services=self.some(SERVICES, 0.7),
            hide_unavailable=dice.random() < 0.3,
            scopes=self.rarely(self.token_scopes(pool), chance=0.4),
            permissions=self.rarely(dice.choice(pool), chance=0.35),
            bundle_tools=self.rarely(dice.choice(pool), frozenset(), 0.3),
            project_bundle_tools=self.rarely(dice.choice(pool), frozenset(), 0.3),
            grants=self.rarely(dice.choice(pool), frozenset(), 0.3),
            unasked=self.rarely(dice.choice(pool), frozenset(), 0.2),
            allowed=self.rarely(dice.choice(pool), chance=0.2),
            disallowed=self.rarely(dice.choice(pool), frozenset(), 0.2),
            scope_file=self.rarely(dice.choice(pool), chance=0.25),
            restrict_networking=dice.random() < 0.5,
            exhausted=self.some(BUDGETS, 0.15),
            paused=self.rarely("everything was paused by owner", "", 0.15),
        )

    def token_scopes(self, pool: Sequence[frozenset[str]]) -> frozenset[str]:
        """Scopes of every form that a token can carry: actions, namespaces, tools by name, everything."""
        dice = self.dice
        scopes = set(self.some(ACTIONS, 0.5)) | self.some([f"{space}:*" for space in SPACES], 0.3)
        scopes |= self.some(("*", "tool:*", "admin", "admin:*"), 0.1)
        by_name = dice.choice(pool) if dice.random() < 0.3 else ()
        return frozenset(scopes | {dice.choice((f"tool:{name}", f"tool:{name}:*")) for name in by_name})

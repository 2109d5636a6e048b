"""How badly things go in a history: drawn from its seed, and gone when it is to come to rest."""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field

BEHAVIOURS: Mapping[str, float] = {
    "fails": 0.05,
    "idles": 0.05,
    "breaks": 0.04,
    "hangs": 0.03,
    "never_starts": 0.02,
    "cannot_start": 0.03,
    "dawdles": 0.02,
    "is_stubborn": 0.08,
    "gives_up": 0.03,
    "asks_for_help": 0.03,
    "splits": 0.04,
    "goes_on": 0.05,
    "leaves_litter": 0.06,
    "mistakes_the_phase": 0.04,
    "mistakes_the_artifact": 0.04,
    "is_slow": 0.06,
}
"""What agents do instead of, or besides, what they are there for; each with its part of all agents."""


@dataclass(slots=True)
class Temper:
    """The chances of one history. `calm`: everybody does their best, so that everything can come to an end."""

    rng: random.Random
    calm: bool = False
    trouble: float = 1.0
    """How much of the usual trouble there is: some histories have little, some a lot."""
    bad_work: float = 0.3
    harsh_judges: float = 0.08
    twice: float = 0.1
    orphans: float = 0.4
    slow_gates: float = 0.1
    failing_gates: float = 0.15
    behaviours: Mapping[str, float] = field(default_factory=lambda: BEHAVIOURS)

    @classmethod
    def drawn(cls, rng: random.Random) -> "Temper":
        trouble = rng.choice((0.1, 0.4, 0.7, 1.2))
        return cls(
            rng,
            trouble=trouble,
            bad_work=rng.choice((0.0, 0.2, 0.5)),
            harsh_judges=rng.choice((0.0, 0.1)),
            twice=rng.choice((0.0, 0.1, 0.4)),
            failing_gates=rng.choice((0.0, 0.2)),
        )

    def happens(self, chance: float, rng: random.Random | None = None) -> bool:
        # Drawn also when all is calm, so that the moment of calm changes nothing before it.
        return (rng or self.rng).random() < chance and not self.calm

    def behaviour(self, rng: random.Random) -> str:
        """What an agent that starts now is going to be like."""
        drawn = rng.random()
        if self.calm:
            return "does_its_best"
        for name, part in self.behaviours.items():
            drawn -= part * self.trouble
            if drawn < 0:
                return name
        return "does_its_best"

"""Where agents look things up: a fleet, the Brave that it asks, and what its clients are shown and asked."""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

from rookery.core.actor import Actor
from rookery.core.context import SilentDoor
from rookery.core.questions import Answer, ClientInfo, Question, Sampled
from rookery.core.results import Result
from tests.domains.research.fake_brave import FakeBrave
from tests.platform_fixtures import Fleet


class Client(SilentDoor):
    """A client that remembers what it was shown. With a `model` it lets that be asked."""

    def __init__(self, model: Callable[[Question], Answer] | None = None) -> None:
        self.shown: list[tuple[str, dict[str, Any]]] = []
        self.asked: list[Question] = []
        self._model = model

    @property
    def client(self) -> ClientInfo:
        return ClientInfo(name="claude-code", protocol="2025-11-25", sampling=self._model is not None)

    def tell(self, method: str, params: dict[str, Any]) -> None:
        self.shown.append((method, params))

    async def ask(self, questions: Sequence[Question]) -> Sequence[Answer]:
        self.asked += questions
        assert self._model is not None
        return [self._model(question) for question in questions]

    @property
    def statuses(self) -> list[str]:
        return [params["message"] for method, params in self.shown if method == "status"]

    @property
    def progress(self) -> list[dict[str, Any]]:
        return [params for method, params in self.shown if method == "progress"]


def says(text: str) -> Callable[[Question], Answer]:
    """A model that always says the same."""
    return lambda question: Sampled(text, "model-of-the-client")


class Desk:
    """Calls tools as agents do."""

    def __init__(self, make: Callable[..., Fleet], brave: FakeBrave) -> None:
        self._make = make
        self.brave = brave
        self.client = Client()

    @cached_property
    def fleet(self) -> Fleet:
        return self._make()

    def with_settings(self, **settings: Any) -> "Desk":
        other = Desk(self._make, self.brave)
        other.fleet = self._make(**settings)
        return other

    @property
    def agent(self) -> Actor:
        return self.fleet.actor()

    async def result(self, tool: str, actor: Actor | None = None, /, **arguments: Any) -> Result:
        return await self.fleet.platform.calls.call(actor or self.agent, tool, arguments, door=self.client)

    async def call(self, tool: str, actor: Actor | None = None, /, **arguments: Any) -> dict[str, Any]:
        """What the tool tells programs."""
        return (await self.result(tool, actor, **arguments)).structured

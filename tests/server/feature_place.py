"""Homes whose servers have the resources and prompts of feature_trials.py, on each database."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rookery.app import Platform, make_platform
from rookery.core.ids import new_id
from rookery.identity.resolve import Binding
from rookery.settings import Settings
from tests.server import feature_trials
from tests.server.conftest import Place
from tests.server.processes import Client

ERAS = ("2025-11-25", "2026-07-28")


@pytest.fixture(scope="session")
def feature_plugin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A distribution whose entry points lead to feature_trials.py and many_trials.py."""
    folder = tmp_path_factory.mktemp("features")
    described = folder / "rookery_features-1.0.dist-info"
    described.mkdir()
    (described / "METADATA").write_text("Metadata-Version: 2.1\nName: rookery-features\nVersion: 1.0\n")
    (described / "entry_points.txt").write_text("[rookery.domains]\nfeatures = tests.server.feature_trials\n")
    return folder


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def home(request: pytest.FixtureRequest, feature_plugin: Path) -> Iterator[Place]:
    """A home with a server, once on each database."""
    place = Place(feature_plugin)
    try:
        if request.param == "postgres":
            place.env["ROOKERY_DATABASE"] = request.getfixturevalue("postgres_dsn")()
        place.server()
        yield place
    finally:
        place.close()


class Owner:
    """The owner in another process than the server: here, in the test's."""

    def __init__(self, platform: Platform) -> None:
        self.platform = platform
        self.actor = platform.database.direct(lambda tx: platform.resolver.resolve(tx, Binding(as_owner=True)).actor)

    async def call(self, name: str, /, **arguments: Any) -> Any:
        return (await self.platform.calls.call(self.actor, name, arguments)).value

    async def new_agent(self, *permissions: str) -> str:
        """The name of an agent that has these tools and nothing else."""
        name = new_id("agent")
        await self.call("create_agent", name=name, permissions=list(permissions))
        return name


@pytest.fixture
def owner(home: Place) -> Iterator[Owner]:
    settings = Settings(home=str(home.home), database=home.env.get("ROOKERY_DATABASE", ""), plugins=False)
    platform = make_platform(settings, extra={"features": feature_trials})
    yield Owner(platform)
    platform.close()


def connect(place: Place, era: str, *flags: str, direct: bool = False, **capabilities: Any) -> Client:
    """A client of either era, ready to ask."""
    client = place.client(*flags, direct=direct)
    if era == "2026-07-28":
        return client.be_modern(**capabilities)
    client.initialize(era, **capabilities)
    return client


def listed(client: Client, what: str) -> set[str]:
    """The names in a list: tools, prompts, resources or resources/templates."""
    found: set[str] = set()
    cursor: dict[str, str] = {}
    for _ in range(20):
        result = client.request(f"{what}/list", **cursor)["result"]
        key = {"resources/templates": "resourceTemplates"}.get(what, what)
        found |= {each["name"] for each in result[key]}
        if "nextCursor" not in result:
            return found
        cursor = {"cursor": result["nextCursor"]}
    raise AssertionError("a list without end")

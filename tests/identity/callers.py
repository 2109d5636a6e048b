"""How the tests of identity call tools: as anyone, as the owner, and as those who must be refused."""

from typing import Any

import pytest

from rookery.core.actor import Actor
from rookery.core.errors import NotFound, PermissionDenied, RookeryError
from rookery.identity.access import AccessStore
from tests.platform_fixtures import Fleet


async def own(fleet: Fleet, name: str, /, **arguments: Any) -> Any:
    """The tool's own result, called as the owner."""
    return await fleet.call(fleet.owner, name, **arguments)


async def agents_are_refused(fleet: Fleet, name: str, /, **arguments: Any) -> None:
    """No agent gets the tool, not even one that was given it by name in every way there is."""
    climber = await own(fleet, "create_agent", name="climber", permissions=[name])
    # grant_tool refuses this; the row alone must not help either.
    fleet.platform.database.direct(
        lambda tx: AccessStore(tx, "default").grant(climber.id, name, "", "nobody", None), write=True
    )
    given = frozenset({name})
    bindings: list[dict[str, Any]] = [
        {},
        {"source": "web"},
        {"profile": "worker"},
        {"agent": "climber"},
        {"agent": "climber", "source": "web", "scope_file": given},
    ]
    for binding in bindings:
        actor = fleet.actor(**binding)
        assert name not in fleet.names(actor)
        with pytest.raises(PermissionDenied) as caught:
            await fleet.call(actor, name, **arguments)
        assert caught.value.layer == "principal"


async def is_not_found(fleet: Fleet, actor: Actor, name: str, /, **arguments: Any) -> None:
    """The call is answered as if what it names did not exist, and no name of another tenant is told."""
    with pytest.raises(NotFound) as caught:
        await fleet.call(actor, name, **arguments)
    assert "eve" not in (caught.value.hint or "")


async def fails_with(kind: type[RookeryError], fleet: Fleet, name: str, /, **arguments: Any) -> RookeryError:
    """What the owner is told when the call fails."""
    with pytest.raises(kind) as caught:
        await own(fleet, name, **arguments)
    assert type(caught.value) is kind
    return caught.value

"""configure_vault: people decide which files are a project's knowledge."""

from typing import Any

import pytest

from rookery.core.errors import InvalidParams, RookeryError
from tests.domains.knowledge.library import Library


async def test_it_is_for_people(library: Library) -> None:
    with pytest.raises(RookeryError) as caught:
        await library.call(library.worker("default"), "configure_vault", on=True)
    assert caught.value.code in {"PERMISSION_DENIED", "NOT_FOUND"}
    assert not (await library.call(library.person("default"), "configure_vault")).configured


@pytest.mark.parametrize(
    "given",
    [
        {"folders": ["../up"]},
        {"folders": ["/etc"]},
        {"folders": ["a"] * 101},
        {"globs": ["x" * 300]},
        {"root": "relative/path"},
        {"globs": ["!"]},
    ],
)
async def test_what_makes_no_sense_is_refused(library: Library, given: dict[str, Any]) -> None:
    with pytest.raises(InvalidParams):
        await library.call(library.person("default"), "configure_vault", **given)
    assert not (await library.call(library.person("default"), "configure_vault")).configured


async def test_absent_values_stay_and_lists_are_replaced(library: Library) -> None:
    person = library.person("default")
    first = await library.call(person, "configure_vault", folders=["docs/", "./notes"], globs=["*.md"])
    assert (first.on, first.folders, first.globs, first.configured) == (True, ["docs", "notes"], ["*.md"], True)
    second = await library.call(person, "configure_vault", on=False, folders=["wiki"])
    assert (second.on, second.folders, second.globs) == (False, ["wiki"], ["*.md"])
    third = await library.call(person, "configure_vault", folders=["."], globs=[], root=str(library.root))
    assert (third.on, third.folders, third.globs, third.root) == (False, [], [], str(library.root))
    assert (await library.call(person, "configure_vault", root="")).root is None


async def test_the_setting_belongs_to_one_project_of_one_tenant(library: Library) -> None:
    await library.open()
    assert not (await library.call(library.person("default"), "configure_vault")).on
    assert not (await library.call(library.stranger, "configure_vault")).configured


async def test_the_servers_own_files_are_nobodys_documents(library: Library) -> None:
    home = library.fleet.platform.settings.home
    for root in (home, f"{home}/data", "/"):
        with pytest.raises(InvalidParams, match="home"):
            await library.call(library.person("default"), "configure_vault", root=root)
    assert not (await library.call(library.person("default"), "configure_vault")).configured

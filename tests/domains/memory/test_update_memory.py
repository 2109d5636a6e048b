"""update_memory: who may write which file, where it goes, and what is refused."""

import os
import stat
from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import pytest

from rookery.core.errors import ConfigurationError, Conflict, InvalidParams, PermissionDenied, ValidationFailed
from rookery.core.lint import lint
from rookery.core.tool import PROFILES
from rookery.domains.memory.file_store import MAX_FILES
from rookery.domains.memory.file_tools import update_memory
from tests.domains.memory.shelves import WORDS, Shelves
from tests.platform_fixtures import Fleet


@pytest.fixture
def shelves(database_url: str, make_fleet: Callable[..., Fleet]) -> Shelves:
    return Shelves(make_fleet(database_url, extra={}))


def facts_of(shelves: Shelves) -> dict[str, Any]:
    return cast("dict[str, Any]", shelves.fleet.platform.calls.facts)


def nothing_is_written(shelves: Shelves) -> bool:
    return shelves.rows() == [] and shelves.files() == []


async def test_an_agent_whose_list_leaves_it_out_is_refused(shelves: Shelves) -> None:
    await shelves.fleet.call(shelves.fleet.owner, "create_agent", name="ada", permissions=["ping"])
    with pytest.raises(PermissionDenied):
        await shelves.update(shelves.worker(agent="ada"), "mine")
    assert nothing_is_written(shelves)


async def test_a_session_without_a_profile_is_told_which_flag_it_lacks(shelves: Shelves) -> None:
    with pytest.raises(PermissionDenied) as refused:
        await shelves.update(shelves.fleet.owner, "mine", scope="global")
    assert "--agent-type" in str(refused.value.hint)
    assert nothing_is_written(shelves)


async def test_a_session_without_a_project_is_told_which_flag_it_lacks(shelves: Shelves) -> None:
    nowhere = replace(shelves.worker(), project=None, project_slug=None)
    with pytest.raises(PermissionDenied) as refused:
        await shelves.update(nowhere, "mine")
    assert "--project-slug" in str(refused.value.hint)
    assert nothing_is_written(shelves)
    assert (await shelves.update(nowhere, "mine", scope="global")).path == "data/memory/_global/worker/notes.md"


async def test_a_server_without_a_home_says_which_flag_it_lacks(shelves: Shelves) -> None:
    facts_of(shelves)["home"] = None
    with pytest.raises(ConfigurationError) as refused:
        await shelves.update(shelves.worker(), "mine")
    assert "--home" in str(refused.value.hint)
    assert nothing_is_written(shelves)


BAD_NAMES = (
    "../x.md", "..%2fx.md", "a/b.md", "/etc/x.md", "a\\b.md", "x.txt", "x", ".md", "..md", ".x.md", "x.md.md", "x.MD",
    "x.md\n", "\nx.md", "x .md", "é.md", "x\u202e.md", "x.md/", "", f"{'x' * 126}.md", "a.md\0",
)  # fmt: skip


async def test_a_filename_that_is_no_plain_markdown_name_is_refused(shelves: Shelves) -> None:
    for filename in BAD_NAMES:
        with pytest.raises(InvalidParams):
            await shelves.update(shelves.worker(), "mine", filename=filename)
    assert nothing_is_written(shelves)


async def test_another_scope_is_refused(shelves: Shelves) -> None:
    for scope in ("", "all", "_global", "default", "../project"):
        with pytest.raises(InvalidParams):
            await shelves.update(shelves.worker(), "mine", scope=scope)
    assert nothing_is_written(shelves)


async def test_a_secret_is_refused_without_being_repeated(shelves: Shelves) -> None:
    secret = "ghp_" + "a1B2c3D4" * 5
    with pytest.raises(ValidationFailed) as refused:
        await shelves.update(shelves.worker(), f"the token is {secret}")
    assert secret not in str(refused.value.as_dict())
    assert nothing_is_written(shelves)


async def test_ten_thousand_characters_fit_and_one_more_does_not(shelves: Shelves) -> None:
    with pytest.raises(InvalidParams):
        await shelves.update(shelves.worker(), "ö" * 10_001)
    assert nothing_is_written(shelves)
    await shelves.update(shelves.worker(), "ö" * 10_000)
    assert (shelves.memory / "default/worker/notes.md").read_text(encoding="utf-8") == "ö" * 10_000


async def test_away_from_the_local_network_nothing_is_kept_in_the_clear(
    database_url: str, make_fleet: Callable[..., Fleet]
) -> None:
    plain = Shelves(make_fleet(database_url, extra={}, network="test"))
    with pytest.raises(ConfigurationError) as refused:
        await plain.update(plain.worker(), "mine")
    assert "ROOKERY_MNEMONIC" in str(refused.value.hint)
    assert nothing_is_written(plain)
    sealed = Shelves(make_fleet(database_url, extra={}, network="test", mnemonic=WORDS))
    await sealed.update(sealed.worker(), "mine")
    assert "mine" in sealed.told(sealed.worker())


async def test_a_link_on_the_way_is_refused_before_anything_is_written(shelves: Shelves) -> None:
    elsewhere = shelves.home.parent / "elsewhere"
    elsewhere.mkdir()
    for link in ("data", "data/memory", "data/memory/default", "data/memory/default/worker"):
        at = shelves.home / link
        at.parent.mkdir(parents=True, exist_ok=True)
        at.symlink_to(elsewhere)
        with pytest.raises(ConfigurationError, match="data/memory/default/worker"):
            await shelves.update(shelves.worker(), "mine")
        assert shelves.rows() == []
        assert list(elsewhere.iterdir()) == []
        at.unlink()


async def test_a_name_that_differs_in_case_alone_is_a_conflict(shelves: Shelves) -> None:
    await shelves.update(shelves.worker(), "first", filename="Notes.md")
    with pytest.raises(Conflict, match=r"Notes\.md"):
        await shelves.update(shelves.worker(), "second", filename="notes.md")
    assert "first" in shelves.told(shelves.worker())
    assert shelves.files() == ["default/worker/Notes.md"]


async def test_a_profile_has_a_hundred_files_in_a_scope_and_no_more(shelves: Shelves) -> None:
    for number in range(MAX_FILES):
        await shelves.update(shelves.worker(), "x", filename=f"n{number}.md")
    with pytest.raises(Conflict, match=str(MAX_FILES)):
        await shelves.update(shelves.worker(), "x", filename="more.md")
    await shelves.update(shelves.worker(), "again", filename="n7.md")
    await shelves.update(shelves.worker(), "x", filename="more.md", scope="global")
    assert len(shelves.rows()) == MAX_FILES + 1


async def test_the_file_is_written_whole_for_the_server_alone(shelves: Shelves) -> None:
    done = await shelves.update(shelves.worker(), "# Notes\n\nöffnen\n", filename="codebase-notes.md")
    assert done.path == "data/memory/default/worker/codebase-notes.md"
    assert done.warning is None
    file = shelves.home / done.path
    assert file.read_bytes() == "# Notes\n\nöffnen\n".encode()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert shelves.files() == ["default/worker/codebase-notes.md"]


async def test_writing_again_replaces_all_of_it(shelves: Shelves) -> None:
    worker = shelves.worker()
    await shelves.update(worker, "the first and longer text")
    await shelves.update(worker, "short")
    assert (shelves.memory / "default/worker/notes.md").read_text(encoding="utf-8") == "short"
    [row] = shelves.rows()
    assert (row.content, row.author) == (b"short", worker.subject)
    await shelves.update(worker, "")
    assert (shelves.memory / "default/worker/notes.md").read_bytes() == b""
    assert shelves.told(worker) == ""


async def test_every_profile_has_it_and_writes_into_a_folder_of_its_own(shelves: Shelves) -> None:
    await shelves.project("shop")
    for profile in PROFILES.values():
        await shelves.update(shelves.worker(profile=profile, project="shop"), profile)
        await shelves.update(shelves.worker(profile=profile), profile, scope="global")
    names = sorted(PROFILES.values())
    assert shelves.files() == [f"{scope}/{name}/notes.md" for scope in ("_global", "shop") for name in names]


async def test_another_tenant_writes_elsewhere_whatever_it_is_called(shelves: Shelves) -> None:
    await shelves.update(shelves.worker(), "ours")
    tenants = ("other", "..", "../../x", "a/b", "Upper", "upper", "_global", "x" * 300, "ö", "default/worker")
    for tenant in tenants:
        done = await shelves.update(shelves.stranger(tenant), tenant)
        file = shelves.home / done.path
        assert file.resolve().parents[3] == (shelves.memory / "_tenants").resolve()
        assert file.read_text(encoding="utf-8") == tenant
    assert len({name.lower() for name in shelves.files()}) == len(tenants) + 1
    assert (shelves.memory / "default/worker/notes.md").read_text(encoding="utf-8") == "ours"


async def test_a_link_in_place_of_the_file_is_replaced_and_not_followed(shelves: Shelves) -> None:
    await shelves.update(shelves.worker(), "first")
    file = shelves.memory / "default/worker/notes.md"
    victim = shelves.home.parent / "victim"
    victim.write_text("untouched", encoding="utf-8")
    file.unlink()
    file.symlink_to(victim)
    assert (await shelves.update(shelves.worker(), "second")).warning is None
    assert not file.is_symlink()
    assert file.read_text(encoding="utf-8") == "second"
    assert victim.read_text(encoding="utf-8") == "untouched"


async def test_a_file_that_cannot_be_written_is_told_and_the_memory_counts(shelves: Shelves) -> None:
    (shelves.memory / "default/worker/notes.md").mkdir(parents=True)
    done = await shelves.update(shelves.worker(), "mine")
    assert "file is not" in done.warning
    assert "mine" in shelves.told(shelves.worker())
    assert os.listdir(shelves.memory / "default/worker") == ["notes.md"]


async def test_the_resource_has_the_whole_file_of_the_own_profile_only(shelves: Shelves) -> None:
    platform = shelves.fleet.platform
    await shelves.update(shelves.worker(), "mine")
    [read] = await platform.calls.read(shelves.worker(), "memory-file://project/notes.md")
    assert (read.text, read.mime_type) == ("mine", "text/markdown")
    for actor in (shelves.worker(profile="judge"), shelves.stranger()):
        with pytest.raises(Exception, match="there is no memory file"):
            await platform.calls.read(actor, "memory-file://project/notes.md")


def test_the_declaration_says_what_its_users_need() -> None:
    assert lint(update_memory) == []
    assert update_memory.profiles == frozenset(PROFILES.values())

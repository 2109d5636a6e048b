"""Documents are searched by pgvector as by any other way: the same tools, nothing of other tenants and projects."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from rookery.cli.machine import Machine
from rookery.cli.stored_checks import check_database
from rookery.core.errors import NotFound
from rookery.domains.knowledge.search import Meaning, meaning_in
from rookery.domains.knowledge.tables import chunks
from rookery.embedding.matrix import Matrix
from rookery.embedding.pgvector import PgVectors, beside
from rookery.embedding.pgvector_table import prepare
from tests.domains.knowledge.library import HashEmbedder, Library
from tests.platform_fixtures import Fleet

LIMIT_S = 60


@pytest.fixture
def library(pgvector_url: str, make_fleet: Callable[..., Fleet], tmp_path: Path) -> Library:
    """An embedder that needs no model, on a server that has pgvector and uses it."""
    fleet = make_fleet(pgvector_url, extra={})
    prepare(fleet.platform.database, chunks.name)
    return Library(fleet, tmp_path, HashEmbedder())


def paths(found: Any) -> list[str]:
    return [each["path"] for each in found.results]


def in_memory(library: Library) -> int:
    """How many bytes the search in memory holds."""
    meaning = meaning_in(library.fleet.platform.database, HashEmbedder())
    assert isinstance(meaning, Meaning)
    assert isinstance(meaning.matrix, PgVectors)
    assert isinstance(meaning.matrix.plain, Matrix)
    return meaning.matrix.plain.size


def vectors(library: Library) -> int:
    return library.rows(sa.text(f"SELECT count(*) AS number FROM {beside(chunks.name)}"))[0].number


async def test_what_words_do_not_find_is_found_by_meaning(library: Library) -> None:
    await library.open()
    await library.index("cars.md", "the automobile stands outside")
    await library.index("cats.md", "the kitten sleeps inside")
    found = await library.search("car", min_score=0.1)
    assert (found.method, paths(found)) == ("vector", ["cars.md"])
    assert in_memory(library) == 0


async def test_documents_that_change_and_go_take_their_vectors_along(library: Library) -> None:
    await library.open()
    await library.index("a.md", "the automobile stands outside")
    await library.index("a.md", "the lorry stands outside")
    assert vectors(library) == 1
    assert paths(await library.search("car", min_score=0.1)) == []
    assert paths(await library.search("truck", min_score=0.1)) == ["a.md"]
    await library.call(library.worker(), "vault_delete", path="a.md")
    assert vectors(library) == 0
    assert paths(await library.search("truck")) == []


async def test_tenants_never_meet(library: Library, tmp_path: Path) -> None:
    await library.open()
    await library.index("a.md", "the automobile stands outside")
    stranger, root = library.stranger, tmp_path / "theirs"
    root.mkdir()
    await library.call(stranger, "create_project", slug="docs", path=str(root))
    theirs = library.fleet.actor(tenant="other", as_owner=True, project="docs")
    await library.call(theirs, "configure_vault", on=True)
    for tool in ("search_knowledge", "vault_retrieve"):
        assert paths(await library.call(theirs, tool, query="car")) == []
    library.write("b.md", "the automobile is theirs", root)
    await library.call(theirs, "vault_update", path="b.md")
    for tool in ("search_knowledge", "vault_retrieve"):
        assert paths(await library.call(theirs, tool, query="car")) == ["b.md"]
        assert paths(await library.call(library.worker(), tool, query="car")) == ["a.md"]
    with pytest.raises(NotFound):
        await library.call(theirs, "vault_delete", path="a.md")


async def test_a_project_is_found_by_those_alone_who_may_read_it(library: Library, tmp_path: Path) -> None:
    await library.open()
    other = tmp_path / "second"
    other.mkdir()
    await library.open("second", other)
    await library.index("a.md", "the automobile stands outside")
    library.write("b.md", "the automobile is elsewhere", other)
    await library.call(library.worker("second"), "vault_update", path="b.md")
    assert paths(await library.search("car", library.worker("second"))) == ["b.md"]
    assert sorted(paths(await library.call(library.person(), "vault_retrieve", query="car"))) == ["a.md", "b.md"]


async def test_the_first_search_turns_it_on(
    pgvector_url: str, make_fleet: Callable[..., Fleet], tmp_path: Path
) -> None:
    library = Library(make_fleet(pgvector_url, extra={}), tmp_path, HashEmbedder())
    await library.open()
    await library.index("cars.md", "the automobile stands outside")
    assert "until" not in told(library)
    limit = time.monotonic() + LIMIT_S
    while "searched by pgvector" not in told(library):
        assert time.monotonic() < limit
        assert paths(await library.search("car", min_score=0.1)) == ["cars.md"]
    assert vectors(library) == 1


def told(library: Library) -> str:
    """What the doctor says of the database."""
    return check_database(Machine(settings=library.fleet.platform.settings, environ={})).sentence

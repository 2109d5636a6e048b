"""vault_retrieve: the documents of every project that the caller may read."""

from pathlib import Path

import pytest

from rookery.core.errors import InvalidParams
from rookery.domains.knowledge.search import Search
from tests.domains.knowledge.library import Library


async def test_more_than_fifty_are_refused(library: Library) -> None:
    with pytest.raises(InvalidParams, match="top_k"):
        await library.call(library.worker(None), "vault_retrieve", query="x", top_k=51)


async def test_a_project_that_is_closed_to_the_agent_is_left_out(library: Library, tmp_path: Path) -> None:
    for slug in ("one", "two"):
        folder = tmp_path / slug
        await library.open(slug, folder)
        library.write("a.md", f"# {slug}\n\nwheels", folder)
        await library.call(library.worker(slug), "vault_update", path="a.md")
    agent = library.fleet.actor(profile="worker")
    found = await library.call(agent, "vault_retrieve", query="wheels")
    assert {hit["metadata"]["project"] for hit in found.results} == {"one", "two"}
    await library.call(library.fleet.owner, "set_project_members", project="two", agents=[])
    found = await library.call(library.fleet.actor(profile="worker"), "vault_retrieve", query="wheels")
    assert [hit["metadata"]["project"] for hit in found.results] == ["one"]
    everything = await library.call(library.fleet.owner, "vault_retrieve", query="wheels")
    assert len(everything.results) == 2


async def test_a_passage_says_where_it_stands(meaning_library: Library) -> None:
    library = meaning_library
    await library.open()
    await library.index("docs/a.md", "# Title\n\n" + "filler words here. " * 60 + "\n\n## Wheels\n\nround wheels")
    found = await library.call(library.worker(), "vault_retrieve", query="round wheels", top_k=50)
    (best,) = [hit for hit in found.results if "round wheels" in hit["text"]]
    assert (best["path"], best["heading"]) == ("docs/a.md", "Title > Wheels")
    assert best["metadata"] == {"project": "docs", "title": "Title", "kind": "markdown", "chunk": 2, "chunks": 2}


async def test_without_any_vault_nothing_is_found(library: Library) -> None:
    found = await library.call(library.worker(None), "vault_retrieve", query="wheels")
    assert (found.method, found.results) == ("keyword", [])


async def test_a_thousand_projects_are_searched_at_once(library: Library) -> None:
    await library.open()
    await library.index("a.md", "# A\n\nwheels")
    projects = [f"prj-{number:032x}" for number in range(1000)]
    actor = library.worker()
    found = library.fleet.platform.database.direct(
        lambda tx: Search(tx, actor.tenant, [*projects, actor.project or ""], None).find("wheels", top_k=5, min_score=0)
    )
    assert [hit.row.path for hit in found.hits] == ["a.md"]

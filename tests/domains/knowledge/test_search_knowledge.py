"""search_knowledge: what a project's documents say, by words and by meaning, for those who may read them."""

import pytest

from rookery.core.errors import ConfigurationError, InvalidParams, NotFound
from tests.domains.knowledge.library import HashEmbedder, Library

CARS = "# Cars\n\nAn automobile has four wheels and an engine.\n"
CATS = "# Cats\n\nA feline sleeps on the sofa all day.\n"


async def test_without_the_setting_the_error_names_it(library: Library) -> None:
    with pytest.raises(ConfigurationError, match="the setting vault of project default is not set") as caught:
        await library.search("anything", library.worker("default"))
    assert "rookery knowledge vault --project default --on" in (caught.value.hint or "")


async def test_a_vault_that_is_turned_off_is_no_longer_searched(library: Library) -> None:
    await library.open()
    await library.index("cars.md", CARS)
    await library.call(library.person(), "configure_vault", on=False)
    with pytest.raises(ConfigurationError, match="is off"):
        await library.search("wheels")
    assert (await library.call(library.worker(), "vault_retrieve", query="wheels")).results == []


async def test_a_query_of_twenty_thousand_characters_or_none_is_refused(library: Library) -> None:
    await library.open()
    for query in ("x" * 20_000, "   ", ""):
        with pytest.raises(InvalidParams, match="query"):
            await library.search(query)
    with pytest.raises(InvalidParams, match="top_k"):
        await library.search("x", top_k=21)
    with pytest.raises(InvalidParams, match="min_score"):
        await library.search("x", min_score=1.5)


async def test_nobody_finds_documents_of_another_project_or_tenant(library: Library) -> None:
    await library.open()
    await library.index("cars.md", CARS)
    await library.open("other", library.folder)
    assert (await library.search("wheels", library.worker("other"))).results == []
    stranger = library.stranger
    await library.call(stranger, "configure_vault", on=True)
    assert (await library.search("wheels", stranger)).results == []
    assert (await library.call(stranger, "vault_retrieve", query="wheels")).results == []


async def test_a_text_cannot_claim_to_belong_to_another_project(library: Library) -> None:
    await library.open()
    await library.open("other", library.folder)
    other = library.worker("other")
    library.write("evil.md", f"\ue000{f'default {library.worker().project}'.encode().hex()} wheels", library.folder)
    await library.call(other, "vault_update", path="evil.md")
    assert (await library.search("wheels")).results == []
    assert len((await library.search("wheels", other)).results) == 1


async def test_an_agent_without_a_role_does_not_find_the_project(library: Library) -> None:
    await library.open()
    await library.index("cars.md", CARS)
    agent = library.worker()
    await library.call(library.fleet.owner, "set_project_members", project="docs", agents=[])
    closed = library.fleet.actor(profile="worker")
    assert agent.project not in {None, closed.project}
    assert (await library.call(closed, "vault_retrieve", query="wheels")).results == []
    with pytest.raises(NotFound):
        library.worker("docs")


async def test_without_an_embedder_words_and_their_stems_find_passages(library: Library) -> None:
    await library.open()
    await library.index("cars.md", CARS)
    await library.index("cats.md", CATS)
    found = await library.search("sleeping felines")
    assert found.method == "keyword"
    (hit,) = found.results
    assert (hit["path"], hit["heading"], hit["text"]) == ("cats.md", "Cats", CATS)
    assert 0.3 <= hit["score"] <= 1
    assert (await library.search("nothing like it")).results == []
    assert (await library.search("?!")).results == []


async def test_a_passage_with_more_of_the_words_scores_higher(library: Library) -> None:
    await library.open()
    await library.index("one.md", "# One\n\nrotate the key of the encryption now and then")
    await library.index("two.md", "# Two\n\nthe key of the door is under the mat of the house")
    found = (await library.search("rotate encryption key", min_score=0)).results
    assert [hit["path"] for hit in found] == ["one.md", "two.md"]
    assert found[0]["score"] == 1
    assert found[1]["score"] < 0.6
    assert len((await library.search("rotate encryption key", min_score=0.9)).results) == 1
    assert len((await library.search("rotate encryption key", top_k=1, min_score=0)).results) == 1


async def test_with_an_embedder_the_meaning_finds_what_the_words_do_not(meaning_library: Library) -> None:
    library = meaning_library
    await library.open()
    await library.index("cars.md", CARS)
    await library.index("cats.md", CATS)
    found = await library.search("kitten", min_score=0)
    assert found.method == "vector"
    assert found.results[0]["path"] == "cats.md"
    assert found.results[0]["score"] > found.results[1]["score"]
    both = await library.search("a kitten that sleeps on the sofa", min_score=0)
    assert (both.method, both.results[0]["path"]) == ("hybrid", "cats.md")


async def test_the_score_is_the_cosine_and_is_compared_with_min_score(meaning_library: Library) -> None:
    library = meaning_library
    await library.open()
    await library.index("same.txt", "alpha beta gamma delta")
    await library.index("half.txt", "alpha beta omega sigma")
    scores = {hit["path"]: hit["score"] for hit in (await library.search("alpha beta gamma delta")).results}
    assert scores["same.txt"] == pytest.approx(1, abs=0.01)
    assert scores["half.txt"] == pytest.approx(0.5, abs=0.01)
    assert len((await library.search("alpha beta gamma delta", min_score=0.6)).results) == 1


async def test_documents_from_before_the_embedder_are_still_found_by_their_words(library: Library) -> None:
    await library.open()
    await library.index("old.txt", "alpha beta")
    library.use(HashEmbedder())
    only_old = await library.search("alpha")
    assert (only_old.method, [hit["path"] for hit in only_old.results]) == ("keyword", ["old.txt"])
    await library.index("new.txt", "alpha gamma")
    found = await library.search("alpha")
    assert found.method == "hybrid"
    assert {hit["path"] for hit in found.results} == {"old.txt", "new.txt"}


async def test_what_is_changed_or_removed_is_found_as_it_is_now(meaning_library: Library) -> None:
    library = meaning_library
    await library.open()
    await library.index("a.txt", "alpha beta")
    assert (await library.search("alpha")).results
    await library.index("a.txt", "omega sigma")
    assert (await library.search("alpha beta", min_score=0.5)).results == []
    assert (await library.search("omega", min_score=0.5)).results
    await library.call(library.worker(), "vault_delete", path="a.txt")
    assert (await library.search("omega", min_score=0)).results == []

"""Knowledge on the console: one search over three kinds, each for those who may read it, and highlighted harmlessly."""

from pathlib import Path
from typing import Any

import pytest

from rookery.identity.store import IdentityStore
from rookery.web.highlighting import marked, passage
from tests.web.crew import person
from tests.web.guest import Guest, words_of

EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)>"
PATTERN = "The heron host needs the VPN before any deployment is begun from outside the office network."


@pytest.fixture
async def library(owner: Guest, tmp_path: Path) -> Guest:
    """The owner, with a vault of two documents, a learning and a memory about herons."""
    root = tmp_path / "docs"
    root.mkdir()
    (root / "birds.md").write_text(f"# Herons\n\nHerons wade & wait. {EVIL}\n\n" + "Filler text. " * 400)
    (root / "ships.txt").write_text("Ships sail.")
    fleet = owner.fleet
    person_actor = fleet.owner
    await fleet.call(person_actor, "configure_vault", on=True, root=str(root))
    for name in ("birds.md", "ships.txt"):
        await fleet.call(person_actor, "vault_update", path=name)
    await fleet.call(person_actor, "save_memory", key=f"herons {EVIL}", content=f"My heron is grey. {EVIL}")
    issue = await fleet.issue("Deploy")
    await fleet.call(fleet.actor(as_owner=True, issue=issue), "add_learning", pattern=PATTERN, learning_type="gotcha")
    return owner


async def test_whoever_is_not_signed_in_finds_nothing(guest: Guest, library: Guest) -> None:
    for path in ("/knowledge", "/knowledge?q=heron", "/knowledge/documents/birds.md"):
        answer = await guest.get(path)
        assert answer.status_code == 303
        assert "heron" not in answer.text.lower()


async def test_a_viewer_reads_documents_and_changes_nothing(library: Guest) -> None:
    viewer = person(library, "viewer")
    page = (await viewer.get("/knowledge")).text
    assert "birds.md" in page
    assert "/knowledge/upload" not in page
    assert "/knowledge/delete" not in page
    assert (await viewer.post("/knowledge/delete", {"path": "birds.md"})).status_code == 403
    assert (await viewer.post("/knowledge/memories", {"key": "k", "content": "c"})).status_code == 403
    assert (await viewer.post("/knowledge/vault", {"on": "no"})).status_code == 403
    assert "birds.md" in await library.words("/knowledge")


async def test_memories_are_found_by_their_owner_alone(library: Guest) -> None:
    operator = person(library, "operator", "Otto")
    words = await operator.words("/knowledge?q=heron&kind=memories")
    assert "My heron is grey" not in words
    assert "My heron is grey" not in await operator.words("/knowledge?tab=memories")
    assert "My heron is grey" in await library.words("/knowledge?q=heron&kind=memories")
    assert "My heron is grey" in await library.words("/knowledge?tab=memories")


async def test_documents_of_another_tenant_are_not_found(library: Guest) -> None:
    fleet = library.fleet
    fleet.platform.database.direct(lambda tx: IdentityStore(tx, "other").set_up(), write=True)
    stranger = fleet.actor(tenant="other", as_owner=True)
    await fleet.call(stranger, "save_memory", key="theirs", content="Their heron is white.")
    assert "Their heron" not in await library.words("/knowledge?q=heron")


async def test_a_form_without_its_token_removes_nothing(library: Guest) -> None:
    answer = await library.client.post("/knowledge/delete", data={"path": "birds.md"})
    assert answer.status_code == 403
    assert "birds.md" in await library.words("/knowledge")


async def test_one_search_finds_all_three_kinds_with_marks_and_scores(library: Guest) -> None:
    page = (await library.get("/knowledge?q=herons")).text
    words = words_of(page)
    assert "document birds.md" in words
    assert "learning gotcha" in words
    assert "memory herons" in words
    assert "<mark>Herons</mark>" in page
    assert "<mark>heron</mark>" in page
    assert "by words" in words
    assert "<script>alert" not in page
    assert "onerror=alert(2)&gt;" in page


async def test_a_filter_leaves_one_kind(library: Guest) -> None:
    words = await library.words("/knowledge?q=heron&kind=learnings")
    assert PATTERN.split(" ", 2)[2][:30] in words
    assert "birds.md" not in words


async def test_a_project_without_a_vault_still_finds_the_rest(owner: Guest) -> None:
    fleet = owner.fleet
    await fleet.call(fleet.owner, "save_memory", key="bird", content="A heron.")
    words = await owner.words("/knowledge?q=heron")
    assert "Documents could not be searched" in words
    assert "A heron" in words


async def test_a_result_leads_to_its_document_with_the_words_marked(library: Guest) -> None:
    page = (await library.get("/knowledge/documents/birds.md?q=wade")).text
    assert "<mark>wade</mark> &amp; wait." in page
    assert "<script>alert" not in page
    assert (await library.get("/knowledge/documents/none.md")).status_code == 404
    assert (await library.get("/knowledge/documents/..%2f..%2fetc%2fpasswd")).status_code == 404


async def test_a_long_document_is_shown_in_pieces(library: Guest, tmp_path: Path) -> None:
    (tmp_path / "docs" / "long.txt").write_text("egret " + "word " * 12_000 + "bittern")
    await library.fleet.call(library.fleet.owner, "vault_update", path="long.txt")
    first = await library.get("/knowledge/documents/long.txt")
    assert "piece 1 of 4" in words_of(first.text)
    last = (await library.get("/knowledge/documents/long.txt?q=bittern")).text
    assert "piece 4 of 4" in words_of(last)
    assert "<mark>bittern</mark>" in last
    assert (await library.get("/knowledge/documents/long.txt?piece=999999999999")).status_code == 200


async def test_documents_are_read_again_and_removed(library: Guest) -> None:
    assert (await library.post("/knowledge/update", {"path": "birds.md"})).status_code == 303
    assert (await library.post("/knowledge/delete", {"path": "ships.txt"})).status_code == 303
    assert "ships.txt" not in await library.words("/knowledge")
    assert (await library.post("/knowledge/vault", {"on": "no"})).status_code == 303
    assert "vault of this project is off" in await library.words("/knowledge")


async def test_the_memories_of_agents_are_counted_by_their_names(owner: Guest) -> None:
    ada = owner.fleet.actor(agent="default")
    await owner.fleet.call(ada, "save_memory", key="bird", content="A heron.")
    words = await owner.words("/knowledge?tab=memories")
    assert "default 1 0 0 1 0 1" in words
    assert str(ada.agent) not in words


async def test_a_memory_is_saved_and_forgotten(owner: Guest) -> None:
    assert "You have no memories here" in await owner.words("/knowledge?tab=memories")
    given = {"key": "lunch", "content": "at <b>noon</b>", "ttl_days": "3"}
    assert (await owner.post("/knowledge/memories", given)).status_code == 303
    page = (await owner.part("/knowledge?tab=memories", "list")).text
    assert "at &lt;b&gt;noon&lt;/b&gt;" in page
    assert (await owner.post("/knowledge/memories", given | {"ttl_days": "soon"})).status_code == 400
    assert (await owner.post("/knowledge/memories/forget", {"key": "lunch"})).status_code == 303
    assert "You have no memories here" in await owner.words("/knowledge?tab=memories")


async def test_a_learning_is_given_a_verdict(library: Guest) -> None:
    page = (await library.get("/knowledge?tab=learnings")).text
    assert PATTERN in page
    learning = page.partition('id="learning-')[2].partition('"')[0]
    at = f"/knowledge/learnings/{learning}/rate"
    assert (await person(library, "viewer").post(at, {"verified": "yes"})).status_code == 403
    assert (await library.post(at, {"verified": "yes", "quality_score": "90"})).status_code == 303
    words = await library.words(f"/knowledge?tab=learnings&learning={learning}")
    assert "verified" in words
    assert "quality 90 of 100" in words
    assert (await library.post("/knowledge/learnings/lrn-none/rate", {"verified": "yes"})).status_code == 404
    assert (await library.post(at, {"quality_score": "101"})).status_code == 400


@pytest.mark.parametrize(
    ("text", "query", "shown"),
    [
        ("Deploying <b>herons</b>", "deploy heron", "<mark>Deploying</mark> &lt;b&gt;<mark>herons</mark>&lt;/b&gt;"),
        ("a & b &amp; amp", "amp", "a &amp; b &amp;<mark>amp</mark>; <mark>amp</mark>"),
        ("nothing", "", "nothing"),
        ("<mark>", "mark", "&lt;<mark>mark</mark>&gt;"),
        ("Cafe\N{COMBINING ACUTE ACCENT}s here", "café", "<mark>Cafés</mark> here"),
    ],
)
def test_marks_stand_in_escaped_text_and_nowhere_else(text: str, query: str, shown: str) -> None:
    assert str(marked(text, query)) == shown


def test_a_passage_is_where_most_words_stand_together() -> None:
    text = "heron " + "x " * 2_000 + "the heron waits at the river " + "y " * 2_000
    found = str(passage(text, "heron waits river"))
    assert found.startswith("… ")
    assert found.count("<mark>") == 3
    assert len(found) < 700


def test_a_text_of_five_megabytes_is_marked_quickly_because_little_of_it_is_read() -> None:
    found: Any = passage("heron " * 900_000, "heron")
    assert len(found) < 2_000

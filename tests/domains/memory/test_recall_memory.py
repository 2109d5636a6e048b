import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st

from rookery.domains.memory.search import DAY_MS, decay
from rookery.domains.memory.store import now_ms
from rookery.domains.memory.tables import memories
from rookery.domains.memory.words import Owner, Tokens
from rookery.sealing.keyring import Keyring
from tests.domains.memory.minds import Minds


async def test_no_agent_person_or_tenant_finds_anybody_elses_memory(minds: Minds) -> None:
    bob = await minds.agent("bob")
    everybody = {"ada": minds.ada, "bob": bob, "owner": minds.fleet.owner, "stranger": minds.stranger()}
    for name, actor in everybody.items():
        await minds.save(actor, "shared key", f"the heron of {name} nests in the reeds")
    for name, actor in everybody.items():
        for how in ({"key": "shared key"}, {"query": "heron reeds"}, {"query": "ada bob owner stranger"}, {}):
            assert [found["content"] for found in await minds.recall(actor, **how)] == [
                f"the heron of {name} nests in the reeds"
            ]


async def test_an_agent_has_its_memories_in_every_session_and_project(minds: Minds) -> None:
    await minds.save(minds.fleet.actor(session="one"), "a", "seen before")
    await minds.fleet.call(minds.fleet.owner, "create_project", slug="shop")
    assert await minds.keys(minds.fleet.actor(session="two", project="shop")) == ["a"]


async def test_misses_are_empty_answers(minds: Minds) -> None:
    assert await minds.recall(minds.ada, query="anything") == []
    await minds.save(minds.ada, "a", "the gateway listens on 8080")
    assert await minds.recall(minds.ada, key="b") == []
    for query in ("heron", "", "?!", '"', "* OR NEAR(", "'", "the", "\\", "a" * 20_000):
        assert await minds.recall(minds.ada, query=query) == [], query


async def test_the_key_wins_over_the_query_and_without_either_the_newest_come(minds: Minds) -> None:
    for number in range(25):
        await minds.save(minds.ada, f"note {number}", f"thing {number}")
    assert await minds.keys(minds.ada, "thing", key="note 3") == ["note 3"]
    assert await minds.keys(minds.ada) == [f"note {number}" for number in range(24, 4, -1)]
    assert await minds.keys(minds.ada, limit=2) == ["note 24", "note 23"]
    await minds.save(minds.ada, "note 0", "thing 0, once more")
    assert await minds.keys(minds.ada, limit=1) == ["note 0"]


async def test_words_are_found_by_their_stems_in_key_and_content_without_case_or_accents(minds: Minds) -> None:
    await minds.save(minds.ada, "deploy:staging", "Releases are rolled out by Zoë on Thursdays")
    await minds.save(minds.ada, "日本", "東京 office is closed")
    for query in ("DEPLOYING", "staging", "released", "zoe", "release thursday", "the rolled"):
        assert await minds.keys(minds.ada, query) == ["deploy:staging"], query
    assert await minds.keys(minds.ada, "東京") == ["日本"]


async def test_beginnings_of_words_are_found_where_memories_are_plain(plain_minds: Minds) -> None:
    await plain_minds.save(plain_minds.ada, "a", "kubernetes upgrade")
    assert await plain_minds.keys(plain_minds.ada, "kube upg") == ["a"]
    assert await plain_minds.keys(plain_minds.ada, "ubern") == []


async def test_what_has_every_word_comes_before_what_has_some_and_rare_words_count_more(minds: Minds) -> None:
    for number in range(8):
        await minds.save(minds.ada, f"common {number}", f"the cache was cleared, take {number}")
    await minds.save(minds.ada, "rare", "flamingo sighted near bay seven")
    await minds.save(minds.ada, "both", "flamingo ate the cache of shrimps")
    found = await minds.recall(minds.ada, query="flamingo cache")
    assert [each["key"] for each in found[:2]] == ["both", "rare"]
    assert found[0]["score"] == 1.0
    assert len(found) == 10
    assert await minds.keys(minds.ada, "flamingo cache", limit=1) == ["both"]


async def test_of_two_that_match_alike_the_one_that_was_saved_lately_comes_first(minds: Minds) -> None:
    await minds.save(minds.ada, "old", "pelican report alpha")
    await minds.save(minds.ada, "new", "pelican report omega")
    for number in range(4):
        await minds.save(minds.ada, f"other {number}", f"nothing of that kind {number}")
    first = minds.rows()[0]
    for days, order in ((0, ["new", "old"]), (100, ["old", "new"])):
        later = sa.update(memories).where(memories.c.seq != first.seq)
        minds.direct(lambda tx, later=later, days=days: tx.run(later.values(updated_ms=now_ms() - days * DAY_MS)))
        assert await minds.keys(minds.ada, "pelican") == order


def test_a_match_counts_less_the_older_it_is() -> None:
    assert [decay(days * DAY_MS) for days in (0, 6, 7, 29, 30, 89, 90, 4000)] == [1, 1, 0.8, 0.8, 0.6, 0.6, 0.4, 0.4]


async def test_a_long_memory_is_cut_in_lists_and_whole_by_its_key(minds: Minds) -> None:
    text = "word " * 1_000
    await minds.save(minds.ada, "long", text)
    for how in ({"query": "word"}, {}):
        (found,) = await minds.recall(minds.ada, **how)
        assert (found["content"], found["cut"]) == (text[:2_000], True)
    (found,) = await minds.recall(minds.ada, key="long")
    assert found["content"] == text
    assert "cut" not in found


async def test_it_says_whether_a_copy_is_in_the_ledger(minds: Minds) -> None:
    await minds.save(minds.ada, "a", "b")
    assert [found["status"] for found in await minds.recall(minds.ada)] == ["none"]


@given(st.text(max_size=60), st.text(max_size=60))
def test_tokens_of_two_owners_never_meet_and_those_of_one_are_found_again(one: str, other: str) -> None:
    keyring = Keyring(bytes(range(32)))
    for key in (None, keyring):
        first, second = Tokens(Owner("default", "agent:a"), key), Tokens(Owner("default", "agent:b"), key)
        assert set(first.of(one)).isdisjoint(second.of(one + " " + other))
        for sought in first.sought(one, plain=key is None):
            assert sought.exact + ((sought.beginning,) if sought.beginning else ())

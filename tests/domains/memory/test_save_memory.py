import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest
import sqlalchemy as sa

from rookery.core.errors import ConfigurationError, InvalidParams, PermissionDenied, ValidationFailed
from rookery.domains.memory.tables import memories, memory_owners
from tests.domains.memory.minds import WORDS, Minds

LONG = (
    "the nightly build of the storefront runs on the small runner, takes about forty minutes and fails when the "
    "cache volume is full, so clear that volume first and start it again from the release branch"
)


async def test_a_profile_has_it_only_through_a_bundle(minds: Minds) -> None:
    with pytest.raises(PermissionDenied):
        await minds.save(minds.fleet.actor(profile="worker"), "a", "b")
    assert minds.rows() == []


@pytest.mark.parametrize(
    "wrong", [{"key": " "}, {"key": "k" * 201}, {"content": ""}, {"content": "c" * 20_001}, {"ttl_days": 0}]
)
async def test_what_is_empty_or_too_long_is_refused(plain_minds: Minds, wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidParams):
        await plain_minds.fleet.call(plain_minds.ada, "save_memory", **{"key": "a", "content": "b", **wrong})
    assert plain_minds.rows() == []


async def test_a_secret_is_refused_by_its_kind_and_not_repeated(minds: Minds) -> None:
    secret = "ghp_" + "a1B2" * 9
    for key, content in (("deploy", f"use {secret} to push"), (secret, "the token to push with")):
        with pytest.raises(ValidationFailed) as caught:
            await minds.save(minds.ada, key, content)
        assert "GitHub token" in caught.value.message
        assert secret not in caught.value.message + str(caught.value.hint)
    assert minds.rows() == []


@pytest.mark.parametrize("network", ["test", "main"])
async def test_beyond_the_local_network_memories_are_sealed_or_refused(
    make_minds: Callable[..., Minds], network: str
) -> None:
    bare = make_minds(network=network)
    with pytest.raises(ConfigurationError) as caught:
        await bare.save(bare.ada, "a", "b")
    assert "ROOKERY_MNEMONIC" in str(caught.value.hint)
    assert bare.rows() == []
    sealing = make_minds(network=network, mnemonic=WORDS)
    assert (await sealing.save(sealing.ada, "a", "b")).outcome == "created"


async def test_a_key_is_written_once_and_then_over(minds: Minds) -> None:
    assert (await minds.save(minds.ada, "port", "the gateway listens on 8080")).outcome == "created"
    assert (await minds.save(minds.ada, " port ", "the gateway listens on 9090")).outcome == "updated"
    (found,) = await minds.recall(minds.ada, key="port")
    assert found["content"] == "the gateway listens on 9090"
    assert await minds.keys(minds.ada, "8080") == []
    assert [row.revision for row in minds.rows()] == [2]


async def test_what_nearly_repeats_another_memory_updates_that_one_and_says_so(minds: Minds) -> None:
    await minds.save(minds.ada, "nightly", LONG)
    changed = LONG.replace("about", "nearly").replace("start", "launch")
    again = await minds.save(minds.ada, "build", changed)
    assert (again.outcome, again.key) == ("merged", "nightly")
    assert [found["content"] for found in await minds.recall(minds.ada)] == [changed]
    assert await minds.recall(minds.ada, key="build") == []


async def test_the_same_words_are_a_repetition_however_short_or_written(minds: Minds) -> None:
    await minds.save(minds.ada, "tabs", "Ada prefers tabs!")
    assert (await minds.save(minds.ada, "style", "ada PREFERS the tabs")).outcome == "merged"


async def test_what_differs_in_a_number_or_in_what_a_key_names_is_no_repetition(minds: Minds) -> None:
    await minds.save(minds.ada, "staging host", LONG + " on staging")
    assert (await minds.save(minds.ada, "production host", LONG + " on production")).outcome == "created"
    await minds.save(minds.ada, "first", LONG + " at 8")
    assert (await minds.save(minds.ada, "second", LONG + " at 9")).outcome == "created"


async def test_nobody_elses_memory_is_a_repetition(minds: Minds) -> None:
    await minds.save(minds.ada, "nightly", LONG)
    for other in (await minds.agent("bob"), minds.fleet.owner, minds.stranger()):
        assert (await minds.save(other, "mine", LONG)).outcome == "created"
    assert len(minds.rows()) == 4


async def test_two_that_say_the_same_at_once_become_one(minds: Minds) -> None:
    saved = await asyncio.gather(*(minds.save(minds.ada, f"key {number}", LONG) for number in range(6)))
    assert sorted(each.outcome for each in saved) == ["created"] + ["merged"] * 5
    assert len(minds.rows()) == 1


async def test_many_at_once_under_one_key_are_one_memory(minds: Minds) -> None:
    await asyncio.gather(*(minds.save(minds.ada, "same", f"version {number}") for number in range(8)))
    (row,) = minds.rows()
    (counts,) = minds.rows(sa.select(memory_owners))
    assert (counts.memories, counts.words) == (1, row.words)


async def test_it_knows_the_run_and_the_issue_in_which_it_was_saved(minds: Minds) -> None:
    issue = await minds.fleet.issue()
    await minds.save(replace(minds.fleet.actor(issue=issue), run="run-7"), "a", "learnt on the way")
    (row,) = minds.rows()
    assert (row.issue_id, row.run_id) == (issue, "run-7")


async def test_a_memory_with_an_end_is_gone_then_and_its_row_with_the_next_save(minds: Minds) -> None:
    await minds.save(minds.ada, "freeze", "no deployment this week", ttl_days=7)
    assert await minds.keys(minds.ada, "deployment") == ["freeze"]
    minds.change(expires_ms=sa.literal(1))
    assert await minds.keys(minds.ada, "deployment") == []
    assert await minds.recall(minds.ada, key="freeze") == []
    assert await minds.keys(minds.ada) == []
    assert (await minds.save(minds.ada, "freeze", "no deployment this week")).outcome == "created"
    (row,) = minds.rows()
    assert row.expires_ms is None
    (counts,) = minds.rows(sa.select(memory_owners))
    assert (counts.memories, counts.words) == (1, row.words)


async def test_counts_tell_how_many_are_not_sealed(make_minds: Callable[..., Minds]) -> None:
    plain = make_minds()
    await plain.save(plain.ada, "a", "one thing")
    await plain.save(plain.ada, "b", "another matter")
    sealing = make_minds(mnemonic=WORDS)
    await sealing.save(sealing.ada, "a", "one thing more")
    (counts,) = sealing.rows(sa.select(memory_owners))
    assert (counts.memories, counts.plain) == (2, 1)
    assert sorted(await sealing.keys(sealing.ada, "thing matter")) == ["a", "b"]
    assert len(sealing.rows(sa.select(memories.c.seq).where(memories.c.key_version.is_(None)))) == 1

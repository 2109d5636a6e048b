"""The issuer's keys: fetched when they are needed, not when somebody wants them fetched."""

import asyncio
import json
import logging
import random
import time
from collections.abc import AsyncIterator, Callable

import pytest

from rookery.server.auth.fetching import MOST_BYTES
from rookery.server.auth.jwks import MAX_AGE_S, Keys
from rookery.server.auth.oauth import OAuthTokens
from tests.server.auth.issuer import (
    Clock,
    KeyServer,
    accepted,
    claims,
    forged,
    oauth_settings,
    refused,
    rsa_entry,
    signed_token,
)

COOLDOWN_S = 300


class Issuer:
    """An issuer and the server's view of it, with a clock that the test turns."""

    def __init__(self, server: KeyServer, timeout_s: float = 5) -> None:
        self.server = server
        self.clock = Clock(1000.0)
        self.keys = Keys(server.address, cooldown_s=COOLDOWN_S, timeout_s=timeout_s, clock=self.clock)
        self.tokens = OAuthTokens(oauth_settings(server.address), time.time, self.keys)

    async def settle(self) -> None:
        """Until the request that was started in passing is over."""
        fetching: asyncio.Task[None] | None = vars(self.keys)["_fetching"]
        if fetching is not None:
            await fetching


@pytest.fixture
async def issuer(key_server: KeyServer) -> AsyncIterator[Issuer]:
    key_server.publish(rsa_entry("first"))
    made = Issuer(key_server)
    yield made
    await made.tokens.close()


def invented(kid: str) -> str:
    return forged({"alg": "RS256", "kid": kid}, claims(), b"x" * 256)


async def test_ten_thousand_invented_key_ids_make_one_request_in_a_cool_down(issuer: Issuer) -> None:
    dice = random.Random(3)
    kids = [f"{dice.getrandbits(128):x}" for _ in range(10_000)]
    for kid in kids[:5000]:
        assert "does not show" in await refused(issuer.tokens, invented(kid))
    assert issuer.server.requests == 1
    for kid in kids[5000:]:
        issuer.clock.now += 2.5 * COOLDOWN_S / 5000
        assert await refused(issuer.tokens, invented(kid))
    assert issuer.server.requests == 3
    assert await accepted(issuer.tokens, signed_token())


async def test_all_who_wait_share_one_request(issuer: Issuer) -> None:
    issuer.server.waits_for_release_then_publishes(rsa_entry("first"))
    tokens = [signed_token(sub=f"user-{number}") for number in range(20)]
    waiting = [asyncio.create_task(accepted(issuer.tokens, token)) for token in tokens]
    bad = [asyncio.create_task(refused(issuer.tokens, invented(f"kid-{number}"))) for number in range(20)]
    while issuer.server.requests == 0:
        await asyncio.sleep(0)
    issuer.server.release.set()
    assert len(await asyncio.gather(*waiting)) == 20
    assert all(await asyncio.gather(*bad))
    assert issuer.server.requests == 1


async def test_one_who_hangs_up_does_not_take_the_keys_from_the_others(issuer: Issuer) -> None:
    issuer.server.waits_for_release_then_publishes(rsa_entry("first"))
    impatient = asyncio.create_task(accepted(issuer.tokens, signed_token(sub="impatient")))
    patient = asyncio.create_task(accepted(issuer.tokens, signed_token()))
    while issuer.server.requests == 0:
        await asyncio.sleep(0)
    impatient.cancel()
    await asyncio.gather(impatient, return_exceptions=True)
    issuer.server.release.set()
    assert await patient


async def test_a_new_key_is_found_when_the_first_token_with_it_comes(issuer: Issuer) -> None:
    assert await accepted(issuer.tokens, signed_token("first"))
    issuer.server.publish(rsa_entry("first"), rsa_entry("second"))
    assert "does not show" in await refused(issuer.tokens, signed_token("second"))
    issuer.clock.now += COOLDOWN_S
    assert await accepted(issuer.tokens, signed_token("second"))
    assert await accepted(issuer.tokens, signed_token("first", sub="eve"))
    assert issuer.server.requests == 2


async def test_a_key_that_was_taken_away_is_forgotten_with_time(issuer: Issuer) -> None:
    assert await accepted(issuer.tokens, signed_token("first"))
    issuer.server.publish(rsa_entry("second"))
    issuer.clock.now += MAX_AGE_S
    assert await accepted(issuer.tokens, signed_token("first", sub="the one who brings it about"))
    await issuer.settle()
    assert "does not show" in await refused(issuer.tokens, signed_token("first", sub="the next"))
    assert await accepted(issuer.tokens, signed_token("second"))


def status(server: KeyServer) -> None:
    server.answers(b"{}", "500 Internal Server Error")


def redirect(server: KeyServer) -> None:
    server.answers(b"", "302 Found", "Location: http://127.0.0.1:1/keys")


def no_json(server: KeyServer) -> None:
    server.answers(b"<html>sign in</html>")


def no_keys(server: KeyServer) -> None:
    server.answers(b'{"keys": {"first": 1}}')


def a_list(server: KeyServer) -> None:
    server.answers(b"[1, 2]")


def nested(server: KeyServer) -> None:
    server.answers(b"[" * 100_000)


def huge(server: KeyServer) -> None:
    body = json.dumps({"keys": [rsa_entry("first")], "more": "x" * MOST_BYTES})
    server.answers(body.encode())


def endless(server: KeyServer) -> None:
    server.never_ends()


def packed(server: KeyServer) -> None:
    server.answers(b"\x1f\x8b\x08\x00garbage", "200 OK", "Content-Encoding: gzip")


def broken(server: KeyServer) -> None:
    server.answers(b"", "not a status")


FAULTS = [status, redirect, no_json, no_keys, a_list, nested, huge, endless, packed, broken]


@pytest.mark.parametrize("fault", FAULTS)
async def test_an_issuer_that_answers_nonsense_leaves_the_known_keys_in_force(
    issuer: Issuer, fault: Callable[[KeyServer], None], caplog: pytest.LogCaptureFixture
) -> None:
    assert await accepted(issuer.tokens, signed_token())
    fault(issuer.server)
    issuer.clock.now += COOLDOWN_S
    with caplog.at_level(logging.WARNING, logger="rookery.auth"):
        assert await refused(issuer.tokens, signed_token("second"))
    assert "could not be fetched" in caplog.text
    assert "the 1 known ones go on" in caplog.text
    assert await accepted(issuer.tokens, signed_token(sub="eve"))
    assert issuer.server.requests == 2


@pytest.mark.parametrize("fault", FAULTS)
async def test_with_no_keys_at_all_everybody_is_refused_and_the_issuer_left_in_peace(
    issuer: Issuer, fault: Callable[[KeyServer], None]
) -> None:
    fault(issuer.server)
    for number in range(5):
        assert "does not show" in await refused(issuer.tokens, signed_token(sub=f"user-{number}"))
    assert issuer.server.requests == 1
    issuer.server.publish(rsa_entry("first"))
    issuer.clock.now += COOLDOWN_S
    assert await accepted(issuer.tokens, signed_token())


async def test_an_issuer_that_does_not_answer_is_waited_for_no_longer_than_the_limit(key_server: KeyServer) -> None:
    key_server.hangs()
    issuer = Issuer(key_server, timeout_s=0.2)
    began = time.monotonic()
    assert await refused(issuer.tokens, signed_token())
    assert time.monotonic() - began < 3
    again = time.monotonic()
    assert await refused(issuer.tokens, signed_token())
    assert time.monotonic() - again < 0.1
    await issuer.tokens.close()


async def test_an_issuer_that_is_gone_leaves_the_known_keys_in_force(issuer: Issuer) -> None:
    assert await accepted(issuer.tokens, signed_token())
    await issuer.server.stop()
    issuer.clock.now += MAX_AGE_S
    assert await accepted(issuer.tokens, signed_token(sub="eve"))
    await issuer.settle()
    assert await accepted(issuer.tokens, signed_token(sub="bob"))
    assert await refused(issuer.tokens, signed_token("second"))


async def test_a_broken_entry_does_not_keep_the_others_from_being_used(issuer: Issuer) -> None:
    issuer.server.publish(
        5, None, [], {}, {"kty": "RSA"}, {"kid": "first"}, rsa_entry("broken", n=""), rsa_entry("first")
    )
    assert await refused(issuer.tokens, signed_token("broken"))
    assert await accepted(issuer.tokens, signed_token("first"))


async def test_closing_ends_a_request_that_is_under_way_and_refuses_those_who_wait(key_server: KeyServer) -> None:
    key_server.hangs()
    issuer = Issuer(key_server)
    waiting = asyncio.create_task(refused(issuer.tokens, signed_token()))
    while key_server.requests == 0:
        await asyncio.sleep(0)
    await issuer.tokens.close()
    assert await waiting

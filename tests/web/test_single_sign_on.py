"""Signing in with a single sign-on, at an issuer on loopback: who gets in, and whom no answer of an issuer lets in."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlsplit

import pytest

from rookery.identity.people import People
from rookery.server.auth import make_authenticator
from rookery.server.http import WebApp
from tests.platform_fixtures import Fleet
from tests.server.auth.issuer import rsa_entry, signed_token
from tests.web.guest import Guest, words_of

CLIENT = "console"
PERSON = {"sub": "42", "email": "Ada@example.org", "email_verified": True}


class SignOn:
    """An issuer that gives out a token for whatever code, with these claims about whoever comes."""

    def __init__(self) -> None:
        self.says: dict[str, Any] = dict(PERSON)
        self.key = "first"
        self.redeemed: list[dict[str, str]] = []
        self.url = ""
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        await self._server.wait_closed()

    def _about(self) -> dict[str, Any]:
        places = {"authorization_endpoint": "/enter", "token_endpoint": "/token", "jwks_uri": "/keys"}
        return {"issuer": self.url, **{name: self.url + path for name, path in places.items()}}

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = int(head.partition("content-length:")[2].split()[0]) if "content-length:" in head else 0
        sent = dict(parse_qsl((await reader.readexactly(length)).decode()))
        body = json.dumps(self._answer(head.split()[1], sent)).encode()
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        await writer.drain()
        writer.close()

    def _answer(self, path: str, sent: dict[str, str]) -> dict[str, Any]:
        if path == "/keys":
            return {"keys": [rsa_entry("first")]}
        if path != "/token":
            return self._about()
        self.redeemed.append(sent)
        usual = {"iss": self.url, "aud": CLIENT, "client_id": None, "scope": None}
        return {"id_token": signed_token(self.key, kid="first", **{**usual, **self.says})}


@pytest.fixture
async def issuer() -> AsyncGenerator[SignOn]:
    made = SignOn()
    await made.start()
    yield made
    await made.stop()


@pytest.fixture
async def guest(database_url: str, make_fleet: Callable[..., Fleet], issuer: SignOn) -> AsyncGenerator[Guest]:
    """Somebody who is not signed in, at a console whose people are known to the issuer; Ada is one of them."""
    fleet = make_fleet(database_url, oidc_issuer=issuer.url, oidc_client_id=CLIENT)
    fleet.platform.database.direct(lambda tx: People(tx, "default").add("Ada", "viewer", "ada@example.org"), write=True)
    web = WebApp(fleet.platform, make_authenticator(fleet.platform.settings), None)
    guest = Guest(fleet, web)
    yield guest
    await guest.close()
    await web.close()


async def leave(guest: Guest, issuer: SignOn, to: str = "") -> dict[str, str]:
    """Go to the issuer, which from then on vouches for this attempt; what it was asked."""
    answer = await guest.get(f"/sign-in/sso{to}")
    assert answer.status_code == 303
    assert answer.headers["location"].startswith(f"{issuer.url}/enter?")
    asked = {name: values[0] for name, values in parse_qs(urlsplit(answer.headers["location"]).query).items()}
    issuer.says.setdefault("nonce", asked["nonce"])
    return asked


async def come_back(guest: Guest, asked: dict[str, str], **changes: str) -> Any:
    return await guest.get("/sign-in/sso/done", params={"code": "abc", "state": asked["state"], **changes})


async def test_somebody_who_is_known_by_a_verified_email_gets_in_and_where_they_wanted_to_go(
    guest: Guest, issuer: SignOn
) -> None:
    assert "Sign in with SSO" in await guest.words("/sign-in")
    asked = await leave(guest, issuer, "?next=/runs")
    assert (asked["response_type"], asked["client_id"], asked["code_challenge_method"]) == ("code", CLIENT, "S256")
    answer = await come_back(guest, asked)
    assert (answer.status_code, answer.headers["location"]) == (303, "/runs")
    assert "HttpOnly" in answer.headers["set-cookie"]
    assert len(issuer.redeemed[0]["code_verifier"]) >= 43
    assert "Ada" in await guest.words("/people")
    again = await come_back(guest, asked)
    assert again.status_code == 403


@pytest.mark.parametrize(
    "says",
    [
        {"email_verified": False},
        {"email_verified": "true"},
        {"email": "eve@example.org"},
        {"email": None},
        {"nonce": "of another attempt"},
        {"aud": "another client"},
        {"iss": "https://elsewhere.example"},
        {"azp": "another client"},
        {"exp": 1},
        {"sub": None},
    ],
)
async def test_whoever_is_unknown_or_not_vouched_for_stays_outside(
    guest: Guest, issuer: SignOn, says: dict[str, Any]
) -> None:
    issuer.says |= says
    answer = await come_back(guest, await leave(guest, issuer))
    assert answer.status_code in (401, 403), words_of(answer.text)
    assert (await guest.get("/people")).status_code == 303


async def test_what_another_key_has_signed_proves_nothing(guest: Guest, issuer: SignOn) -> None:
    issuer.key = "second"
    assert (await come_back(guest, await leave(guest, issuer))).status_code in (401, 403)
    assert (await guest.get("/people")).status_code == 303


async def test_only_the_browser_that_has_begun_comes_back(guest: Guest, issuer: SignOn) -> None:
    asked = await leave(guest, issuer)
    for wrong in ({"state": "x"}, {"code": ""}, {"error": "access_denied"}, {"iss": "https://elsewhere.example"}):
        assert (await come_back(guest, asked, **wrong)).status_code == 403, wrong
        asked = await leave(guest, issuer)
    guest.client.cookies.clear()
    assert (await come_back(guest, asked)).status_code == 403
    assert issuer.redeemed == []


async def test_it_leads_to_no_other_site_and_is_not_there_unless_it_is_set_up(
    guest: Guest, issuer: SignOn, database_url: str, make_fleet: Callable[..., Fleet]
) -> None:
    answer = await come_back(guest, await leave(guest, issuer, "?next=//elsewhere.example"))
    assert answer.headers["location"] == "/"
    fleet = make_fleet(database_url)
    web = WebApp(fleet.platform, make_authenticator(fleet.platform.settings), None)
    plain = Guest(fleet, web)
    assert "SSO" not in await plain.words("/sign-in")
    assert (await plain.get("/sign-in/sso/done")).status_code == 404
    await plain.close()
    await web.close()

"""Ten thousand forged requests in every mode of authentication: none is served, and each is told the right thing."""

import hashlib
import hmac
import json
import time
from collections import Counter
from typing import Any

import jwt
import pytest
import sqlalchemy as sa

from rookery.around.audit import audit_log
from rookery.identity.access import token_row
from rookery.identity.tables import agents, grants, tokens
from tests.server.auth.issuer import (
    AUDIENCE,
    ISSUER,
    SECRET,
    claims,
    forged,
    part,
    public_pem,
    rsa_entry,
    rsa_key,
    shared_token,
    signed_token,
)
from tests.server.streamable.conftest import MakeWeb
from tests.server.streamable.forgers import Forger, Forgery, Loot
from tests.server.streamable.gates import OTHER_TENANT, Gate, gate
from tests.server.streamable.raw import Answer, Raw
from tests.server.streamable.web import Web, until

REQUESTS = 3400
LEEWAY_S = 30
FEW_SCOPES = "probe:read"
WRONG_CLAIMS: list[dict[str, Any]] = [
    {"aud": "https://another.example/mcp"},
    {"aud": None},
    {"aud": ["https://another.example"]},
    {"iss": "https://evil.example"},
    {"iss": None},
    {"iss": f"{ISSUER}/"},
    {"exp": int(time.time()) - LEEWAY_S - 100},
    {"exp": None},
    {"exp": "never"},
    {"nbf": int(time.time()) + 3600},
    {"iat": int(time.time()) + 3600},
    {"client_id": None},
    {"client_id": ["cli"]},
    {"scope": None},
    {"scope": ""},
    {"tid": "nowhere"},
    {"tid": 7},
    {"sub": {"role": "owner"}},
]


def hmac_token(secret: bytes, algorithm: str = "HS256", **header: Any) -> str:
    signed = f"{part({'alg': algorithm, 'typ': 'JWT', **header})}.{part(claims())}"
    return f"{signed}.{part(hmac.digest(secret, signed.encode(), hashlib.sha256))}"


def forged_tokens(mode: str) -> list[str]:
    """Tokens that no issuer of this server made, or not for it."""
    spellings = ["none", "None", "NONE", "nOnE", "", "null", None, "none ", 0]
    made = [forged({"alg": spelling, "typ": "JWT"}, claims()) for spelling in spellings]
    made += [
        forged({"alg": "none"}, claims(), b"x" * 32),
        forged({"alg": "HS256"}, claims()),
        f"{part({})}.{part({})}.",
    ]
    made += [hmac_token(public_pem("first")), hmac_token(public_pem("first"), "RS256", kid="first")]
    made += [hmac_token(b""), hmac_token(b"secret"), hmac_token(SECRET.encode()[:-1])]
    made += [shared_token(SECRET + "x"), jwt.encode(claims(), "k" * 64, algorithm="HS512")]
    made += [signed_token("forger", kid="first"), signed_token("forger", kid=None), signed_token("forger", "PS256")]
    made += [signed_token("forger", headers={"jwk": rsa_entry("forger")}), signed_token("forger", kid="../../keys")]
    made += [signed_token("forger", headers={"jku": "http://127.0.0.1:1/keys"}), signed_token("forger", "ES256")]
    made += ["rk_" + "a" * 43, "rk_", "x", "null", "undefined", "a.b.c", "a" * 8000, "..", "==", "rk_" + "é" * 43]
    if mode == "jwt":
        made += [shared_token(**wrong) for wrong in WRONG_CLAIMS]
        made += [shared_token(headers={"typ": "JWE"}), shared_token(headers={"crit": ["exp"]}), signed_token("first")]
        made += [jwt.encode(claims(), SECRET + SECRET, algorithm="HS384"), hmac_token(SECRET.encode(), "HS512")]
    if mode == "oauth":
        made += [signed_token(**wrong) for wrong in WRONG_CLAIMS]
        made += [shared_token(), jwt.encode(claims(), rsa_key("first"), algorithm="RS512", headers={"kid": "first"})]
    return made


async def stolen_tokens(door: Gate) -> list[str]:
    """Tokens that were good, and are not any more."""
    if door.mode != "local":
        sign = shared_token if door.mode == "jwt" else signed_token
        return [sign(sub=who, exp=int(time.time()) - LEEWAY_S - 60) for who in ("ada", "eve", "owner")]
    revoked = [door.local_token(who)[1] for who in ("ada", "eve", "mallory")]
    for secret in revoked:
        assert (await door.web.modern("tools/list", secret)).status_code == 200
        door.revoke(secret)
    over = door.local_token("ada", left_s=0.3)[1]
    await until(lambda: door.web.platform.database.direct(lambda tx: token_row(tx, over)) is None, "a token runs out")
    return [*revoked, over]


async def loot(door: Gate) -> tuple[Loot, dict[str, str]]:
    """What the forger has, and the sessions of others with the tokens that they belong to."""
    web = door.web
    others = {
        "another subject": await door.token("ada"),
        "another tenant": await door.token("mallory", tenant=OTHER_TENANT, scope=FEW_SCOPES),
        "another client": await door.token("mallory", client="other", scope=FEW_SCOPES),
    }
    if door.mode == "local":
        others["a person"] = await web.token(None)
    sessions = {await web.initialize(token): token for token in others.values()}
    own = await door.token("mallory", scope=FEW_SCOPES)
    names = {"agent": web.fleet.actor().agent or "", "tenant": OTHER_TENANT, "subject": "ada"}
    return (
        Loot(
            own=own,
            session=await web.initialize(own),
            sessions=list(sessions),
            stolen=await stolen_tokens(door),
            forged=forged_tokens(door.mode),
            names=names,
            asks_for_scopes=door.mode == "oauth",
        ),
        sessions,
    )


class Sender:
    """Keeps one connection for as long as the server does."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._raw: Raw | None = None

    async def ask(self, data: bytes) -> Answer:
        if self._raw is None:
            self._raw = await Raw(self._port).__aenter__()
        answer = await self._raw.ask(data)
        if answer.headers.get("connection") == "close":
            await self.close()
        return answer

    async def close(self) -> None:
        if self._raw is not None:
            await self._raw.__aexit__(None, None, None)
        self._raw = None


def refused(forgery: Forgery, answer: Answer) -> bool:
    """Whether the answer is the refusal that the forgery is owed."""
    if answer.status != forgery.status:
        return False
    if not forgery.inside:
        return answer.status >= 400 and b'"result"' not in answer.body
    message = answer.json
    return "error" in message or message["result"].get("isError") is True


def recorded(web: Web) -> Counter[str]:
    """How often each outcome stands in the audit log."""
    rows = web.platform.database.direct(lambda tx: tx.all(sa.select(audit_log.c.outcome, audit_log.c.tool)))
    return Counter(f"{row.outcome} {row.tool}" for row in rows)


def identities(web: Web) -> list[int]:
    counts = [sa.select(sa.func.count()).select_from(table) for table in (agents, grants, tokens)]
    return [web.platform.database.direct(lambda tx, count=count: tx.scalar(count)) for count in counts]


@pytest.mark.parametrize("mode", ["local", "jwt", "oauth"])
async def test_no_forged_request_is_served(make_web: MakeWeb, mode: str, caplog: pytest.LogCaptureFixture) -> None:
    strict = {"auth_issuer": ISSUER, "auth_audience": AUDIENCE} if mode == "jwt" else {}
    async with gate(make_web, mode, **strict) as door:
        web = door.web
        found, sessions = await loot(door)
        before, held, opened = recorded(web), identities(web), len(web.endpoint.table)
        forger, sender = Forger(7, found), Sender(web.port)
        seen: Counter[str] = Counter()
        for _ in range(REQUESTS):
            forgery = forger.next()
            answer = await sender.ask(forgery.data)
            assert refused(forgery, answer), (forgery, answer)
            seen[f"{forgery.kind} {answer.status}"] += 1
        await sender.close()
        assert len({kind.split()[0] for kind in seen}) == len({kind.__name__ for kind in forger.kinds}), seen
        new = recorded(web) - before
        assert {name.split()[0] for name in new} <= {"refused", "invalid"}, new
        assert (identities(web), len(web.endpoint.table)) == (held, opened)
        for session, token in {**sessions, found.session: found.own}.items():
            assert (await web.call(session, "say_again", token, name="x")).status_code == 200
    assert not [record.getMessage() for record in caplog.records if record.exc_info]
    assert not [secret for secret in (found.own, *found.stolen, *found.sessions) if secret in caplog.text]


def test_a_request_that_is_not_spoiled_would_be_served() -> None:
    """The forger's requests are refused for what is wrong with them, not for a slip in all of them."""
    found = Loot("own", "s" * 64, ["t" * 64], ["stolen"], ["forged"], {"agent": "a", "tenant": "t", "subject": "s"})
    forger = Forger(1, found)
    good = [forger.good().bytes() for _ in range(20)]
    assert all(b"authorization: Bearer own" in data for data in good)
    assert {b"2026-07-28" in data for data in good} == {True, False}
    assert json.loads(good[0].partition(b"\r\n\r\n")[2])["method"] == "tools/call"

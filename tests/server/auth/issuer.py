"""An issuer of tokens as the tests need it: keys, tokens right and wrong, and a loopback server for the keys."""

import asyncio
import base64
import hashlib
import hmac
import json
import time
from collections.abc import Awaitable, Callable
from functools import cache
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

from rookery.core.errors import Unauthorized
from rookery.server.auth import Authenticator, Credential
from rookery.settings import Settings

SECRET = "a-secret-of-the-tests-that-is-long-enough"
ISSUER = "https://issuer.example"
AUDIENCE = "https://rookery.example/mcp"
NONES = ["none", "None", "NONE", "nOnE", "none ", "", None, 0, [], ["none"], {"alg": "HS256"}]
Json = dict[str, Any]


@cache
def _rsa_key(name: str, bits: int) -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, bits)


@cache
def _ec_key(name: str, curve: type[ec.EllipticCurve]) -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(curve())


def rsa_key(name: str, bits: int = 2048) -> rsa.RSAPrivateKey:
    """The private key of that name, the same for the whole run."""
    return _rsa_key(name, bits)


def ec_key(name: str, curve: type[ec.EllipticCurve] = ec.SECP256R1) -> ec.EllipticCurvePrivateKey:
    return _ec_key(name, curve)


def public_pem(name: str) -> bytes:
    kind = serialization.PublicFormat.SubjectPublicKeyInfo
    return rsa_key(name).public_key().public_bytes(serialization.Encoding.PEM, kind)


def rsa_entry(name: str, bits: int = 2048, **more: Any) -> Json:
    """A published RSA key whose id is its name."""
    return {**RSAAlgorithm.to_jwk(rsa_key(name, bits).public_key(), as_dict=True), "kid": name, "use": "sig"} | more


def ec_entry(name: str, curve: type[ec.EllipticCurve] = ec.SECP256R1, **more: Any) -> Json:
    return {**ECAlgorithm.to_jwk(ec_key(name, curve).public_key(), as_dict=True), "kid": name, "use": "sig"} | more


def claims(**changes: Any) -> Json:
    """Claims that are right; a change to None takes one away."""
    now = int(time.time())
    right: Json = {
        "iss": ISSUER,
        "aud": AUDIENCE,
        "sub": "ada",
        "client_id": "cli",
        "scope": "system:read",
        "iat": now,
        "exp": now + 7200,
    }
    return {name: value for name, value in (right | changes).items() if value is not None}


def shared_token(secret: str | bytes = SECRET, headers: Json | None = None, **changes: Any) -> str:
    """A token signed with the shared secret."""
    return jwt.encode(claims(**changes), secret, algorithm="HS256", headers=headers)


def signed_token(
    key: str = "first", algorithm: str = "RS256", kid: str | None = "", headers: Json | None = None, **changes: Any
) -> str:
    """A token signed with a private key, named by its id unless `kid` says otherwise (None: unnamed)."""
    private = ec_key(key) if algorithm == "ES256" else rsa_key(key)
    named = {"kid": kid or key} if kid is not None else {}
    return jwt.encode(claims(**changes), private, algorithm=algorithm, headers={**named, **(headers or {})})


def part(value: Any) -> str:
    """One part of a token, as base64url."""
    raw = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def forged(header: Any, payload: Any, signature: bytes = b"") -> str:
    return f"{part(header)}.{part(payload)}.{part(signature)}"


def resigned(header: object, payload: object, secret: str = SECRET) -> str:
    """A token with a right HMAC over whatever its parts are."""
    signed = f"{part(header)}.{part(payload)}"
    return f"{signed}.{part(hmac.digest(secret.encode(), signed.encode(), hashlib.sha256))}"


def jwt_settings(**changes: Any) -> Settings:
    chosen: Json = {"auth_mode": "jwt", "auth_secret": SECRET} | changes
    return Settings(home="/nowhere", **chosen)


def oauth_settings(address: str, **changes: Any) -> Settings:
    chosen: Json = {"auth_issuer": ISSUER, "auth_audience": AUDIENCE, "auth_jwks_uri": address} | changes
    return Settings(home="/nowhere", auth_mode="oauth", **chosen)


async def accepted(authenticator: Authenticator, token: str) -> Credential:
    return await authenticator.authenticate(f"Bearer {token}")


async def refused(authenticator: Authenticator, token: str) -> str:
    """Why a token is refused. Anything but a refusal fails the test, and none repeats the token."""
    with pytest.raises(Unauthorized) as caught:
        await authenticator.authenticate(f"Bearer {token}")
    assert caught.value.hint
    assert len(token) < 8 or token not in f"{caught.value.message} {caught.value.hint}"
    return caught.value.message


class Clock:
    """Time that passes when the test says so."""

    def __init__(self, now: float) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


Answer = Callable[[asyncio.StreamWriter], Awaitable[None]]


class KeyServer:
    """Publishes keys on loopback, and misbehaves when told to."""

    def __init__(self) -> None:
        self.requests = 0
        self.release = asyncio.Event()
        self._answer: Answer = self._gone
        self._talks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> "KeyServer":
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
            for talk in self._talks:
                talk.cancel()
            await asyncio.gather(*self._talks, return_exceptions=True)
            await self._server.wait_closed()

    @property
    def address(self) -> str:
        assert self._server is not None
        port = self._server.sockets[0].getsockname()[1] if self._server.sockets else self._port
        self._port: int = port
        return f"http://127.0.0.1:{port}/keys"

    def publish(self, *entries: Any) -> None:
        self.answers(json.dumps({"keys": entries}).encode())

    def answers(self, body: bytes, status: str = "200 OK", *headers: str) -> None:
        """Answer every request like this from now on."""
        head = "\r\n".join((f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", "Connection: close", *headers))

        async def send(writer: asyncio.StreamWriter) -> None:
            writer.write(head.encode() + b"\r\n\r\n" + body)
            await writer.drain()

        self._answer = send

    def hangs(self) -> None:
        """Take requests and say nothing until released; then publish nothing."""

        async def wait(writer: asyncio.StreamWriter) -> None:
            await self.release.wait()

        self._answer = wait

    def never_ends(self) -> None:
        """Send keys without end."""

        async def pour(writer: asyncio.StreamWriter) -> None:
            writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + b'{"keys": [')
            while not writer.is_closing():
                writer.write(b'{"kty": "RSA"},' * 1000)
                await writer.drain()

        self._answer = pour

    def waits_for_release_then_publishes(self, *entries: Any) -> None:
        self.publish(*entries)
        publish = self._answer

        async def later(writer: asyncio.StreamWriter) -> None:
            await self.release.wait()
            await publish(writer)

        self._answer = later

    async def _gone(self, writer: asyncio.StreamWriter) -> None:
        return

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.requests += 1
        talk = asyncio.current_task()
        assert talk is not None
        self._talks.add(talk)
        try:
            await reader.readuntil(b"\r\n\r\n")
            await self._answer(writer)
        except (OSError, asyncio.IncompleteReadError):
            pass  # the other side has had enough, which some tests are about
        finally:
            self._talks.discard(talk)
            writer.close()

"""Servers on this machine that remember what they were sent, and certificates for them."""

import asyncio
import contextlib
import datetime
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from aiosmtpd.smtp import SMTP, AuthResult, Envelope, Session
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

Said = tuple[int, dict[str, str], bytes]


@dataclass(frozen=True)
class Seen:
    """One request as it came in."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


@dataclass
class Web:
    """A web server. `answers` says what is told to whom asks for a path; other paths are told 200 and `{}`."""

    port: int = 0
    host: str = "127.0.0.1"
    seen: list[Seen] = field(default_factory=list[Seen])
    answers: dict[str, tuple[int, dict[str, str], bytes]] = field(
        default_factory=dict[str, tuple[int, dict[str, str], bytes]]
    )
    act: "Callable[[Seen], Awaitable[Said]] | None" = None
    """What works the answers out, instead of `answers`."""
    silent: bool = False
    names: list[str | None] = field(default_factory=list[str | None])
    """The names that clients wanted a certificate for."""

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}"

    def says(self, path: str, status: int = 200, body: bytes = b"{}", **headers: str) -> None:
        self.answers[path] = (status, {name.replace("_", "-"): value for name, value in headers.items()}, body)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            method, path, _ = head[0].split(" ")
            headers = {line.split(":", 1)[0].lower(): line.split(":", 1)[1].strip() for line in head[1:] if line}
            body = await reader.readexactly(int(headers.get("content-length", "0")))
            seen = Seen(method, path, headers, body)
            self.seen.append(seen)
            if self.silent:
                await reader.read()
            else:
                known = self.answers.get(path.partition("?")[0], (200, {}, b"{}"))
                await self._answer(known if self.act is None else await self.act(seen), writer)
        writer.close()
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            await writer.wait_closed()

    async def _answer(self, answer: "Said", writer: asyncio.StreamWriter) -> None:
        status, more, said = answer
        lines = [f"HTTP/1.1 {status} Said", f"Content-Length: {len(said)}", "Connection: close"]
        lines += [f"{name}: {value}" for name, value in more.items()]
        writer.write("\r\n".join([*lines, "", ""]).encode() + said)
        await writer.drain()


@contextlib.asynccontextmanager
async def web_server(
    host: str = "127.0.0.1", *, port: int = 0, tls: ssl.SSLContext | None = None
) -> AsyncGenerator[Web]:
    """A web server that has stopped when the block ends."""
    web = Web(host=host)
    if tls is not None:
        tls.sni_callback = lambda _socket, name, _context: web.names.append(name)
    server = await asyncio.start_server(web.serve, host, port, ssl=tls)
    web.port = server.sockets[0].getsockname()[1]
    try:
        yield web
    finally:
        server.close()
        await server.wait_closed()


@dataclass
class Post:
    """A mail server: what it was handed, and how it behaves."""

    port: int = 0
    mails: list[bytes] = field(default_factory=list[bytes])
    commands: list[str] = field(default_factory=list[str])
    refuse: Mapping[str, int] = field(default_factory=dict[str, int])
    """The first word of a command, and the code that it is refused with."""
    tls: ssl.SSLContext | None = None
    silent: bool = False

    async def keep_silent(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            await reader.read()
        writer.close()

    async def handle_DATA(self, _server: SMTP, _session: Session, envelope: Envelope) -> str:  # noqa: N802
        self.mails.append(cast(bytes, envelope.content))
        return "250 taken"


class _Smtp(SMTP):
    """aiosmtpd, with a note of every command and refusals on demand."""

    def __init__(self, post: Post) -> None:
        self._post = post
        super().__init__(
            post, hostname="post", tls_context=post.tls, auth_require_tls=False,
            authenticator=lambda *_: AuthResult(success=True),
        )  # fmt: skip
        for word, method in list(self._smtp_methods.items()):
            self._smtp_methods[word] = self._noted(word, method)

    def _noted(self, word: str, method: Callable[[str], Awaitable[None]]) -> Callable[[str], Awaitable[None]]:
        async def noted(argument: str) -> None:
            self._post.commands.append(f"{word} {argument or ''}".strip())
            if word in self._post.refuse:
                await self.push(f"{self._post.refuse[word]} no: {argument}")
            else:
                await method(argument)

        return noted


@contextlib.asynccontextmanager
async def mail_server(**how: object) -> AsyncGenerator[Post]:
    """A mail server that has stopped when the block ends. `wrapped` is a context for TLS from the start."""
    wrapped = cast("ssl.SSLContext | None", how.pop("wrapped", None))
    post = Post(**how)  # pyright: ignore[reportArgumentType]
    if post.silent:
        server: asyncio.Server = await asyncio.start_server(post.keep_silent, "127.0.0.1", 0)
    else:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: _Smtp(post), "127.0.0.1", 0, ssl=wrapped)
    post.port = server.sockets[0].getsockname()[1]
    try:
        yield post
    finally:
        server.close()
        await server.wait_closed()


def certified(name: str, folder: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """A context for a server of that name, and one for clients that trust it and nobody else."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    file = folder / f"{name}.pem"
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file.write_bytes(secret + made.public_bytes(serialization.Encoding.PEM))
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(file)
    return server, ssl.create_default_context(cafile=str(file))


class Names:
    """A name server that says what it is told to; the last answer of a name stays."""

    def __init__(self, **names: list[list[str]]) -> None:
        self.answers = {name.replace("_", "."): list(answers) for name, answers in names.items()}
        self.asked: list[str] = []

    async def __call__(self, host: str, port: int) -> list[str]:
        self.asked.append(host)
        answers = self.answers.get(host)
        if answers is None:
            return [host]
        return answers.pop(0) if len(answers) > 1 else answers[0]

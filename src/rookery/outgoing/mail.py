"""Sends mail by SMTP, to the address that the guard has checked and with the name that the certificate must have."""

import asyncio
import contextlib
import smtplib
import socket
import ssl
from collections.abc import Sequence
from dataclasses import dataclass, field
from email.message import EmailMessage
from typing import Any, Literal

from rookery.core.errors import RookeryError, ServiceUnavailable, TimedOut, ValidationFailed
from rookery.outgoing.client import CONNECT_S, GuardedClient
from rookery.outgoing.threads import in_thread

Security = Literal["starttls", "ssl", "none"]
STEP_S = 10.0
TIMEOUT_S = 30.0
LASTING = range(500, 600)


@dataclass(frozen=True, slots=True, kw_only=True)
class MailServer:
    """Where mail is handed in. Without a `username` nobody logs in."""

    host: str
    port: int
    security: Security = "starttls"
    username: str = ""
    password: str = field(default="", repr=False)


async def send_mail(
    client: GuardedClient, server: MailServer, message: EmailMessage, *, timeout_s: float = TIMEOUT_S
) -> None:
    """Hand a message in; when this returns, the server has taken it.

    A refusal that will stay one is ValidationFailed, everything else can be tried again. A password goes to a server
    without encryption only if the owner allowed that server.
    """
    if server.security == "none" and server.username and not client.named(server.host, server.port):
        raise ValidationFailed(
            "a password would go to the mail server in the open", hint="set security to starttls or ssl"
        )
    places = await client.addresses(server.host, server.port)
    line = _Line(server, places, client.tls)
    work = asyncio.create_task(in_thread(lambda: line.hand_in(message)))
    work.add_done_callback(lambda done: done.cancelled() or done.exception())
    try:
        async with asyncio.timeout(timeout_s):
            await asyncio.shield(work)
    except TimeoutError:
        raise TimedOut(f"the mail server did not take it within {timeout_s:g} s", hint="try again later") from None
    finally:
        # The thread may be waiting for the other side; nothing else ends it.
        line.cut()


class _Line:
    """One connection to a mail server."""

    def __init__(self, server: MailServer, places: Sequence[str], tls: ssl.SSLContext) -> None:
        self._server = server
        self._places = places
        self._tls = tls
        self._handle: socket.socket | None = None
        self._over = False

    def connect(self, port: int, timeout: float) -> socket.socket:
        made = self._reach(port, timeout)
        # A handle of its own: with TLS the first one goes over to another object.
        self._handle = made.dup()
        if self._over:
            self.cut()
        return made

    def _reach(self, port: int, timeout: float) -> socket.socket:
        """A connection to the first of the addresses that answers."""
        for place in self._places[:-1]:
            with contextlib.suppress(OSError):
                return socket.create_connection((place, port), min(timeout, CONNECT_S))
            if self._over:
                break
        return socket.create_connection((self._places[-1], port), timeout)

    def cut(self) -> None:
        """End the connection, from any thread, whether it is there already or only coming."""
        self._over = True
        if self._handle is not None:
            with contextlib.suppress(OSError):
                self._handle.shutdown(socket.SHUT_RDWR)
            self._handle.close()

    def hand_in(self, message: EmailMessage) -> None:
        try:
            self._hand_in(message)
        except smtplib.SMTPResponseException as error:
            self._refused(error.smtp_code)
        except smtplib.SMTPRecipientsRefused as error:
            codes = [code for code, _ in error.recipients.values()]
            self._refused(codes[0] if codes else 550)
        except smtplib.SMTPNotSupportedError:
            raise ValidationFailed(
                "the mail server offers no such encryption or login", hint="change security"
            ) from None
        except ssl.SSLError:
            raise ServiceUnavailable(
                "the mail server has no valid certificate, or speaks no TLS on this port"
            ) from None
        except (smtplib.SMTPException, OSError, ValueError) as error:
            # What the other side said is not repeated: it may be what we sent.
            raise ServiceUnavailable(f"the mail server could not take the mail ({type(error).__name__})") from None

    def _refused(self, code: int) -> None:
        said = f"the mail server refused the mail ({code})"
        error: RookeryError = ValidationFailed(said) if code in LASTING else ServiceUnavailable(said)
        raise error from None

    def _hand_in(self, message: EmailMessage) -> None:
        server = self._server
        kind: Any = _PinnedTls if server.security == "ssl" else _Pinned
        how = {"context": self._tls} if server.security == "ssl" else {}
        with kind(self, server.host, server.port, local_hostname="localhost", timeout=STEP_S, **how) as smtp:
            if server.security == "starttls":
                smtp.starttls(context=self._tls)
            if server.username:
                smtp.login(server.username, server.password)
            smtp.send_message(message)


class _Pinned(smtplib.SMTP):
    """Connects where the line says, whatever the host's name leads to by now."""

    def __init__(self, line: _Line, *args: Any, **how: Any) -> None:
        self._line = line
        super().__init__(*args, **how)

    def _get_socket(self, host: str, port: int, timeout: float) -> socket.socket:
        return self._line.connect(port, timeout)


class _PinnedTls(smtplib.SMTP_SSL, _Pinned):
    """The same, encrypted from the start."""

    def __init__(self, line: _Line, *args: Any, **how: Any) -> None:
        self._line = line
        smtplib.SMTP_SSL.__init__(self, *args, **how)

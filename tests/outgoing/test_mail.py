"""Mail: to the address that was checked, with the name that the certificate must have, and no password in the open."""

from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest

from rookery.core.errors import ServiceUnavailable, TimedOut, ValidationFailed
from rookery.outgoing.client import GuardedClient
from rookery.outgoing.mail import MailServer, send_mail
from tests.outgoing.loopback import Names, certified, mail_server

pytestmark = pytest.mark.anyio
NAMES = Names(mail_example=[["127.0.0.1"]])


def a_mail() -> EmailMessage:
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = "a@example.org", "b@example.org", "Tests are green"
    message.set_content("All of them.\n.\nReally.")
    return message


def at(port: int, **how: Any) -> MailServer:
    return MailServer(**{"host": "mail.example", "port": port, "security": "none", **how})


async def test_a_server_on_this_machine_is_refused_unless_it_is_allowed() -> None:
    async with mail_server() as post:
        with pytest.raises(ValidationFailed, match=r"the host is in this machine's own"):
            await send_mail(GuardedClient(resolve=NAMES), at(post.port), a_mail())
        assert post.commands == []


async def test_a_mail_is_handed_in() -> None:
    async with mail_server() as post:
        await send_mail(GuardedClient(["127.0.0.1"], resolve=NAMES), at(post.port), a_mail())
        (mail,) = post.mails
        assert b"Subject: Tests are green" in mail
        assert b"\r\n.\r\nReally." in mail
        assert not [line for line in post.commands if line.startswith("AUTH")]


async def test_a_password_goes_in_the_open_only_to_a_server_that_the_owner_named() -> None:
    async with mail_server() as post:
        secret = at(post.port, username="ada", password="hunter2")
        with pytest.raises(ValidationFailed, match="in the open") as refusal:
            await send_mail(GuardedClient(["127.0.0.1"], resolve=NAMES), secret, a_mail())
        assert "hunter2" not in f"{refusal.value} {secret!r}"
        assert post.commands == []
        await send_mail(GuardedClient(["mail.example"], resolve=NAMES), secret, a_mail())
        assert len(post.mails) == 1


@pytest.mark.parametrize("security", ["starttls", "ssl"])
async def test_tls_checks_the_name_that_was_asked_for(tmp_path: Path, security: str) -> None:
    server, trusting = certified("mail.example", tmp_path)
    names = Names(mail_example=[["127.0.0.1"]], other_example=[["127.0.0.1"]])
    client = GuardedClient(["127.0.0.1"], resolve=names, tls=trusting)
    how = {"tls": server} if security == "starttls" else {"wrapped": server}
    async with mail_server(**how) as post:
        login = {"security": security, "username": "ada", "password": "hunter2"}
        await send_mail(client, at(post.port, **login), a_mail())
        assert len(post.mails) == 1
        with pytest.raises(ServiceUnavailable, match=r"the mail server has no valid certificate"):
            await send_mail(client, at(post.port, host="other.example", **login), a_mail())
        assert len(post.mails) == 1


async def test_a_server_without_encryption_is_refused_if_some_was_wanted() -> None:
    async with mail_server() as post:
        with pytest.raises(ValidationFailed, match="offers no such encryption"):
            await send_mail(GuardedClient(["127.0.0.1"], resolve=NAMES), at(post.port, security="starttls"), a_mail())
        assert post.mails == []


@pytest.mark.parametrize(
    ("word", "code", "error"),
    [
        ("MAIL", 451, ServiceUnavailable),
        ("MAIL", 550, ValidationFailed),
        ("RCPT", 450, ServiceUnavailable),
        ("RCPT", 550, ValidationFailed),
        ("AUTH", 535, ValidationFailed),
        ("DATA", 554, ValidationFailed),
    ],
)
async def test_a_refusal_is_told_by_its_code_alone(word: str, code: int, error: type[Exception]) -> None:
    async with mail_server(refuse={word: code}) as post:
        secret = at(post.port, username="ada", password="hunter2")
        with pytest.raises(error) as refusal:
            await send_mail(GuardedClient(["mail.example"], resolve=NAMES), secret, a_mail())
        assert str(refusal.value) == f"the mail server refused the mail ({code})"
        assert post.mails == []


async def test_a_silent_server_and_a_closed_port_can_be_tried_again() -> None:
    client = GuardedClient(["127.0.0.1"], resolve=NAMES)
    async with mail_server(silent=True) as post:
        with pytest.raises(TimedOut, match="did not take it"):
            await send_mail(client, at(post.port), a_mail(), timeout_s=0.2)
    with pytest.raises(ServiceUnavailable, match="could not take the mail"):
        await send_mail(client, at(post.port), a_mail())


async def test_an_address_that_does_not_answer_is_followed_by_the_next() -> None:
    names = Names(mail_example=[["127.0.0.9", "127.0.0.1"]])
    async with mail_server() as post:
        await send_mail(GuardedClient(["127.0.0.0/8"], resolve=names), at(post.port), a_mail())
        assert len(post.mails) == 1

"""The channel that is told by mail: what arrives, and what cannot be smuggled into it."""

from email import message_from_bytes, policy
from typing import Any

import pytest

from rookery.core.errors import ValidationFailed
from rookery.domains.owner.channel_notice import Notice
from rookery.domains.owner.channels import send_by
from rookery.outgoing.client import GuardedClient
from tests.outgoing.loopback import Post, mail_server

pytestmark = pytest.mark.anyio
CLIENT = GuardedClient(["127.0.0.1"])


def config(post: Post, **more: str) -> dict[str, str]:
    return {
        "smtp_host": "127.0.0.1",
        "smtp_port": str(post.port),
        "security": "none",
        "from_address": "rookery@example.org",
        "to_address": "ada@example.org",
        **more,
    }


def told(**values: Any) -> Notice:
    return Notice(**{"delivery": "dlv-1", "about": "notification", "id": "ntf-1", "title": "", "text": "hi", **values})


@pytest.mark.parametrize(
    "more",
    [
        {"to_address": "ada@example.org, eve@example.org"},
        {"to_address": "ada@example.org\r\nBcc: eve@example.org"},
        {"from_address": "nobody"},
        {"from_address": "a..b@example.org"},
        {"from_address": ".a@example.org"},
        {"to_address": "a@example..org"},
        {"to_address": "a@-example.org"},
        {"smtp_port": "70000"},
        {"smtp_port": "x"},
        {"security": "maybe"},
        {"password": "hunter2"},
    ],
)
async def test_a_bad_config_sends_nothing(more: dict[str, str]) -> None:
    async with mail_server() as post:
        with pytest.raises(ValidationFailed) as refusal:
            await send_by(CLIENT, "email", config(post, **more), told(), shared=False)
        assert "hunter2" not in str(refusal.value)
        assert post.commands == []


async def test_a_mail_arrives_as_it_was_written() -> None:
    async with mail_server() as post:
        notice = told(title="Grüße\r\nBcc: eve@example.org", text="Zeile 1\n.\nZeile ✓", sender="ada")
        ref = await send_by(CLIENT, "email", config(post, username="u", password="hunter2"), notice, shared=False)
        assert ref == "<dlv-1@example.org>"
        mail = message_from_bytes(post.mails[0], policy=policy.default)
        assert (mail["Subject"], mail["Bcc"]) == ("Grüße Bcc: eve@example.org", None)
        assert (mail["To"], mail["Message-ID"]) == ("ada@example.org", ref)
        assert mail.get_content().strip().splitlines() == ["│ Zeile 1", "│ .", "│ Zeile ✓", "", "— ada"]
        assert [line for line in post.commands if line.startswith("RCPT")] == ["RCPT TO:<ada@example.org>"]


async def test_a_notification_without_a_title_has_the_beginning_of_its_text_as_subject() -> None:
    async with mail_server() as post:
        await send_by(
            CLIENT, "email", config(post), told(text="all\ngreen " + "x" * 300, level="success"), shared=False
        )
        subject = message_from_bytes(post.mails[0], policy=policy.default)["Subject"]
        assert subject.startswith("success: all green xxx")
        assert len(subject) == 80

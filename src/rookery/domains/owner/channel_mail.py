"""The channel that is told by mail."""

import re
from collections.abc import Mapping
from email.headerregistry import Address
from email.message import EmailMessage
from typing import cast

from rookery.core.errors import ValidationFailed
from rookery.domains.owner.channel_frames import Fit
from rookery.domains.owner.channel_notice import Notice
from rookery.outgoing.client import GuardedClient
from rookery.outgoing.mail import MailServer, send_mail

SUBMISSION, TLS_PORT = 587, 465
MAIL = Fit(limit=1_000_000)
_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_ADDRESS = re.compile(rf"(?=.{{1,64}}@.{{1,255}}$){_ATOM}(?:\.{_ATOM})*@{_LABEL}(?:\.{_LABEL})*")


async def email(client: GuardedClient, config: Mapping[str, str], notice: Notice) -> str | None:
    """A mail of plain text. Its Message-ID is the same at every attempt, so most mailboxes show it once."""
    server = server_of(config)
    message = EmailMessage()
    sender = config["from_address"]
    message["From"] = Address("Rookery", addr_spec=sender)
    message["To"] = Address(addr_spec=config["to_address"])
    message["Subject"] = notice.headline
    message["Message-ID"] = f"<{notice.delivery}@{sender.rpartition('@')[2]}>"
    message["Auto-Submitted"] = "auto-generated"
    message.set_content(notice.told(MAIL).text)
    await send_mail(client, server, message)
    return cast(str, message["Message-ID"])


async def check_email(client: GuardedClient, config: Mapping[str, str]) -> None:
    """Refuse a config that cannot be, or a server that may not be reached."""
    server = server_of(config)
    await client.addresses(server.host, server.port)


def port_of(config: Mapping[str, str]) -> int:
    """The port of the config, that of submission if it has none."""
    text = config.get("smtp_port", str(SUBMISSION))
    if not re.fullmatch(r"[0-9]{1,5}", text) or not 0 < int(text) < 65536:
        raise ValidationFailed("config: smtp_port must be from 1 to 65535")
    return int(text)


def server_of(config: Mapping[str, str]) -> MailServer:
    """Where the config has mail handed in; ValidationFailed if that cannot be."""
    for key in ("from_address", "to_address"):
        if not _ADDRESS.fullmatch(config[key]):
            raise ValidationFailed(f"config: {key} must be a mail address such as ada@example.org")
    port = port_of(config)
    security = config.get("security", "ssl" if port == TLS_PORT else "starttls")
    if security not in ("starttls", "ssl", "none"):
        raise ValidationFailed("config: security must be starttls, ssl or none")
    if ("username" in config) != ("password" in config):
        raise ValidationFailed("config: username and password go together")
    return MailServer(
        host=config["smtp_host"],
        port=port,
        security=security,
        username=config.get("username", ""),
        password=config.get("password", ""),
    )

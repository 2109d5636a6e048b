"""The channel for every service that Apprise knows and that has no channel of its own."""

from collections.abc import Mapping

from rookery.core.errors import ValidationFailed
from rookery.domains.owner.channel_frames import Fit
from rookery.domains.owner.channel_notice import Notice
from rookery.outgoing.client import GuardedClient
from rookery.outgoing.services import check_service, is_installed, tell_service


async def check_apprise(client: GuardedClient, config: Mapping[str, str]) -> None:
    """Refuse an address that Apprise cannot use."""
    if not is_installed():
        raise ValidationFailed("apprise is not installed", hint="pip install 'rookery[notify]'")
    await check_service(client.allow, config["url"])


async def apprise(client: GuardedClient, config: Mapping[str, str], notice: Notice) -> str | None:
    """Told by one service; what that calls the message is not known."""
    body = notice.told(Fit()).text
    await tell_service(client.allow, config["url"], title=notice.headline, body=body, level=notice.level)
    return None

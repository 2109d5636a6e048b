"""How agents of ours reach agents elsewhere: the internet, and what the owner allows for that."""

from rookery.core.errors import ValidationFailed
from rookery.outgoing.client import GuardedClient
from rookery.settings import Settings

HINT = "the owner can allow it with the setting a2a_allow"


class AgentsClient(GuardedClient):
    """Names the setting by which the owner allows it to reach more."""

    async def addresses(self, host: str, port: int) -> list[str]:
        try:
            return await super().addresses(host, port)
        except ValidationFailed as error:
            raise ValidationFailed(error.message, hint=HINT) from None


def agents_client(settings: Settings) -> GuardedClient:
    """The client of an installation."""
    return AgentsClient(settings.a2a_allow)


def reason(error: Exception) -> str:
    """What an error of the client says, and what the owner can do about it, if that is to allow the address."""
    if isinstance(error, ValidationFailed) and error.hint == HINT:
        return f"{error.message}; {HINT}"
    return getattr(error, "message", str(error))

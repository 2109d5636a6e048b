"""Who may come in over HTTP: one authenticator for each `auth_mode`. Whatever is not proven is refused."""

from rookery.core.errors import ConfigurationError
from rookery.server.auth.credential import Authenticator, Credential, MissingToken
from rookery.server.auth.metadata import protected_resource_metadata
from rookery.settings import Settings

__all__ = ["Authenticator", "Credential", "MissingToken", "make_authenticator", "protected_resource_metadata"]


def make_authenticator(settings: Settings) -> Authenticator:
    """The authenticator that the settings ask for. Close it when the server stops."""
    # The libraries for signatures take a tenth of a second to load, and the usual mode needs none of them.
    if settings.auth_mode == "local":
        from rookery.server.auth.local import LocalTokens

        return LocalTokens()
    if settings.auth_mode == "none":
        from rookery.server.auth.local import NoTokens

        return NoTokens(settings)
    if settings.auth_mode == "jwt":
        from rookery.server.auth.shared_secret import SharedSecret

        return SharedSecret(settings)
    if settings.auth_mode == "oauth":
        from rookery.server.auth.oauth import OAuthTokens

        return OAuthTokens(settings)
    raise ConfigurationError(f"auth_mode cannot be {settings.auth_mode!r}", hint="one of local, jwt, oauth, none")

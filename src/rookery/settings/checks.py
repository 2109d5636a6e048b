"""Settings that are right by themselves and wrong together: whatever would leave a door open stops the start."""

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from rookery.core.errors import ConfigurationError
from rookery.settings.addresses import is_loopback, safe_address
from rookery.settings.values import shown

if TYPE_CHECKING:
    from rookery.settings import Settings

SHORTEST_SECRET = 32


class Mismatch(ConfigurationError):
    """A setting that does not go with the others. `at` says the same of the place that it came from."""

    def __init__(self, key: str, what: str, hint: str) -> None:
        super().__init__(f"{key} {what}", hint=hint)
        self.key = key
        self.what = what

    def at(self, place: str) -> ConfigurationError:
        return ConfigurationError(f"{place} {self.what}", hint=self.hint)


def check(settings: "Settings") -> None:
    """Refuse what does not go together."""
    _check_github_app(settings)
    _check_oidc(settings)
    if settings.runtime == "command" and not settings.runtime_command:
        raise Mismatch("runtime_command", "is missing, and runtime is command", "name the program that is the agent")
    if settings.auth_mode == "none":
        _check_open(settings)
    elif settings.auth_mode == "jwt" and len(settings.auth_secret) < SHORTEST_SECRET:
        what = "is too short" if settings.auth_secret else "is missing, and auth_mode is jwt"
        hint = f"it needs at least {SHORTEST_SECRET} characters, such as the output of: openssl rand -hex 32"
        raise Mismatch("auth_secret", what, hint)
    elif settings.auth_mode == "oauth":
        _check_oauth(settings)


def _check_github_app(settings: "Settings") -> None:
    parts = ("github_app_id", "github_app_installation_id", "github_app_key")
    missing = [key for key in parts if not getattr(settings, key)]
    if missing and len(missing) < len(parts):
        raise Mismatch(missing[0], "is missing, and the rest of the GitHub App is set", f"set {', '.join(parts)}")


def _check_oidc(settings: "Settings") -> None:
    for one, other in (("oidc_issuer", "oidc_client_id"), ("oidc_client_id", "oidc_issuer")):
        if getattr(settings, one) and not getattr(settings, other):
            raise Mismatch(other, f"is missing, and {one} is set", "single sign-on needs both, or leave both out")


def _check_open(settings: "Settings") -> None:
    if not is_loopback(settings.host):
        raise Mismatch(
            "auth_mode",
            f"cannot be 'none' while the server listens on {settings.host}",
            "without authentication only this machine may be served: set host to 127.0.0.1, or auth_mode to local",
        )
    if settings.public_url and not is_loopback(urlsplit(settings.public_url).hostname or ""):
        raise Mismatch(
            "auth_mode",
            f"cannot be 'none' for a server that others reach as {settings.public_url}",
            "set auth_mode to local, jwt or oauth, or unset public_url",
        )


def _check_oauth(settings: "Settings") -> None:
    for key, variable in (("auth_issuer", "OAUTH_ISSUER_URL"), ("auth_audience", "OAUTH_AUDIENCE")):
        if not getattr(settings, key):
            raise Mismatch(key, "is missing, and auth_mode is oauth", f"set it here or as {variable}")
    try:
        safe_address(settings.auth_issuer)
    except ValueError as error:
        hint = "it must be an https address (http only on this machine), exactly as the tokens have it"
        raise Mismatch("auth_issuer", f"cannot be {shown('auth_issuer', settings.auth_issuer)}", hint) from error

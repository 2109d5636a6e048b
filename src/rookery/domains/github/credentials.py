"""Who we are at GitHub: the holder of a token, or the installation of an App, which gets a new token every hour."""

import asyncio
import base64
import hashlib
import json
import time
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol, cast

from rookery.core.errors import ConfigurationError, ServiceUnavailable
from rookery.outgoing.client import Answer
from rookery.settings import Settings

SET_HINT = "the owner sets GITHUB_TOKEN (or GH_TOKEN) or a GitHub App, and starts the server again: docs/github.md"
EARLY_S = 60.0
"""A token is not used in its last minute: it could end on the way."""
JWT_S = 540
"""GitHub takes none that lasts longer than ten minutes; its clock may be behind ours."""
MAX_TOKENS = 16
_PEM = "-----BEGIN"

# By what the App is and where; lost with the process, since the next one gets a token of its own.
_TOKENS: dict[str, tuple[str, float]] = {}


class Ask(Protocol):
    """Sends one request to the API with the given authorization."""

    async def __call__(self, method: str, path: str, authorization: str) -> Answer: ...


@dataclass(frozen=True, slots=True)
class PersonalToken:
    """Acts as the person, or the robot account, whose token it is."""

    token: str = field(repr=False)

    @property
    def name(self) -> str:
        return f"token {self.token}"

    async def authorization(self, ask: Ask) -> str:
        return f"Bearer {self.token}"

    def refused(self) -> bool:
        """Whether another try could help after GitHub has refused it."""
        return False


@dataclass(frozen=True, slots=True)
class AppInstallation:
    """Acts as an App where it is installed."""

    app_id: str
    installation_id: int
    key: str = field(repr=False)
    place: str

    @property
    def name(self) -> str:
        digest = hashlib.sha256(self.key.encode()).hexdigest()
        return f"app {self.app_id} {self.installation_id} {digest} {self.place}"

    async def authorization(self, ask: Ask) -> str:
        """A token that is good for a while; asked for if there is none."""
        known = _TOKENS.get(self.name)
        if known is None or known[1] <= time.time():
            known = await self._new_token(ask)
            if len(_TOKENS) >= MAX_TOKENS:
                _TOKENS.clear()
            _TOKENS[self.name] = known
        return f"Bearer {known[0]}"

    def refused(self) -> bool:
        """A token may have been revoked before its time: the next is a new one."""
        return _TOKENS.pop(self.name, None) is not None

    async def _new_token(self, ask: Ask) -> tuple[str, float]:
        signed = await asyncio.to_thread(signed_claim, self.app_id, self.key, int(time.time()))
        path = f"/app/installations/{self.installation_id}/access_tokens"
        answer = await ask("POST", path, f"Bearer {signed}")
        if answer.status in (401, 403, 404):
            raise ConfigurationError(
                f"GitHub does not know this App or its installation {self.installation_id} (it answered "
                f"{answer.status})",
                hint="check GITHUB_APP_ID, GITHUB_APP_INSTALLATION_ID, the key and the clock",
            )
        body = cast("dict[str, Any]", answer.json()) if isinstance(answer.json(), dict) else {}
        token, ends = body.get("token"), _moment(body.get("expires_at"))
        if answer.status != 201 or not isinstance(token, str) or not token.isascii() or ends is None:
            raise ServiceUnavailable(
                f"GitHub gave no token for the App (it answered {answer.status})", hint="try again later"
            )
        return token, ends - EARLY_S


Credential = PersonalToken | AppInstallation


def credential_of(settings: Settings, *, account: bool = False) -> Credential:
    """What to act with. Stars and follows are a person's: an App has no account that could have them.

    ConfigurationError says what to set if there is nothing.
    """
    if settings.github_app_id and not account:
        return AppInstallation(
            settings.github_app_id,
            settings.github_app_installation_id,
            settings.github_app_key,
            settings.github_api_url,
        )
    if settings.github_token:
        return PersonalToken(settings.github_token)
    if settings.github_app_id:
        raise ConfigurationError(
            "stars and follows need the token of an account, and there is only an App", hint=SET_HINT
        )
    raise ConfigurationError("no GitHub token is set", hint=SET_HINT)


def signed_claim(app_id: str, key: str, now_s: int) -> str:
    """A JWT that says, for some minutes, that whoever sends it is the App. Blocks: the key may be in a file."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import padding, rsa

    try:
        loaded = serialization.load_pem_private_key(_pem(key), password=None)
    except (ValueError, TypeError, OSError, UnsupportedAlgorithm):
        loaded = None
    if not isinstance(loaded, rsa.RSAPrivateKey):
        raise ConfigurationError(
            "the key of the GitHub App cannot be read as an RSA key in PEM",
            hint="github_app_key is the text of the key that GitHub gave, or the path of its file",
        )
    claims = {"iat": now_s - 60, "exp": now_s + JWT_S, "iss": app_id}
    text = b".".join(_url_safe(json.dumps(part).encode()) for part in ({"alg": "RS256", "typ": "JWT"}, claims))
    signature = loaded.sign(text, padding.PKCS1v15(), hashes.SHA256())
    return b".".join((text, _url_safe(signature))).decode()


def _pem(key: str) -> bytes:
    if key.lstrip().startswith(_PEM):
        # One line of an environment file cannot have others.
        return key.replace("\\n", "\n").strip().encode()
    with open(key, "rb") as file:
        return file.read(65_536)


def _url_safe(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")


def _moment(text: Any) -> float | None:
    try:
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, TypeError, OverflowError):
        return None

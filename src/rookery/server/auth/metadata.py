"""What RFC 9728 lets a client find out: which resource this is and who issues tokens for it."""

from typing import Any

from rookery.settings import Settings

ALGORITHMS = ("RS256", "ES256", "PS256")


def protected_resource_metadata(settings: Settings, origin: str) -> dict[str, Any]:
    """The document at /.well-known/oauth-protected-resource. Names no tool and no scope."""
    origin = settings.public_url or origin
    audience = settings.auth_audience if settings.auth_mode == "oauth" else ""
    found: dict[str, Any] = {
        "resource": settings.auth_resource or _address(audience) or f"{origin}{settings.http_path}",
        "bearer_methods_supported": ["header"],
        "resource_name": "Rookery",
        "resource_documentation": f"{origin}/",
    }
    if settings.auth_mode == "oauth":
        found["authorization_servers"] = [settings.auth_issuer]
        found["resource_signing_alg_values_supported"] = list(ALGORITHMS)
        found["jwks_uri"] = settings.jwks_address
    return found


def _address(audience: str) -> str:
    """An audience that can be a resource: many are mere names."""
    return audience if audience.startswith(("https://", "http://")) else ""

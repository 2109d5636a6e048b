"""What a client may find out about this resource before it has a token."""

from mcp.shared.auth import ProtectedResourceMetadata

from rookery.server.auth import protected_resource_metadata
from rookery.settings import Settings
from tests.server.auth.issuer import ISSUER, jwt_settings, oauth_settings

HERE = "http://127.0.0.1:4242"
KEYS = "https://issuer.example/keys"


def test_the_metadata_of_an_oauth_server_is_what_a_client_needs() -> None:
    found = protected_resource_metadata(oauth_settings(KEYS), HERE)
    assert found == {
        "resource": "https://rookery.example/mcp",
        "authorization_servers": [ISSUER],
        "bearer_methods_supported": ["header"],
        "resource_signing_alg_values_supported": ["RS256", "ES256", "PS256"],
        "resource_name": "Rookery",
        "resource_documentation": f"{HERE}/",
        "jwks_uri": KEYS,
    }
    assert ProtectedResourceMetadata.model_validate(found)


def test_the_resource_is_the_identifier_or_an_audience_that_is_an_address_or_the_endpoint() -> None:
    def resource(**changes: str) -> str:
        return protected_resource_metadata(oauth_settings(KEYS, **changes), HERE)["resource"]

    assert resource(auth_resource="https://r.example", auth_audience="https://a.example") == "https://r.example"
    assert resource(auth_audience="https://a.example") == "https://a.example"
    assert resource(auth_audience="rookery") == f"{HERE}/mcp"
    assert resource(auth_audience="rookery", http_path="/agents") == f"{HERE}/agents"
    assert resource(auth_audience="rookery", public_url="https://rookery.example") == "https://rookery.example/mcp"


def test_the_keys_of_an_issuer_are_at_the_usual_place_unless_said_otherwise() -> None:
    usual = oauth_settings("", auth_issuer=f"{ISSUER}/")
    assert protected_resource_metadata(usual, HERE)["jwks_uri"] == f"{ISSUER}/.well-known/jwks.json"


def test_without_oauth_no_authorization_server_is_named() -> None:
    for settings in (Settings(home="/nowhere"), jwt_settings(auth_issuer=ISSUER, auth_audience="https://a.example")):
        found = protected_resource_metadata(settings, HERE)
        assert found["resource"] == f"{HERE}/mcp"
        assert found.keys().isdisjoint({"authorization_servers", "jwks_uri"})

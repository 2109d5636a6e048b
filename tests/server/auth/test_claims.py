"""What a signed token must say, and how the usual spellings of it are read."""

import time
from typing import Any

import pytest

from rookery.core.errors import Unauthorized
from rookery.identity.resolve import TokenIdentity
from rookery.server.auth.claims import LEEWAY_S, identity_of
from rookery.settings import Settings
from tests.server.auth.issuer import AUDIENCE, ISSUER, claims, jwt_settings

NOW = 1_800_000_000.0
OPEN = jwt_settings()
STRICT = jwt_settings(auth_issuer=ISSUER, auth_audience=AUDIENCE)


def read(settings: Settings = OPEN, **changes: Any) -> TokenIdentity:
    return identity_of(claims(**{"iat": NOW, "exp": NOW + 600} | changes), settings, NOW)


def why_not(settings: Settings = OPEN, **changes: Any) -> str:
    with pytest.raises(Unauthorized) as caught:
        read(settings, **changes)
    assert caught.value.hint
    return caught.value.message


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"exp": None}, "has no end"),
        ({"exp": NOW - LEEWAY_S}, "has expired"),
        ({"exp": 0}, "has expired"),
        ({"nbf": NOW + LEEWAY_S + 1}, "not valid yet"),
        ({"iat": NOW + LEEWAY_S + 1}, "issued in the future"),
    ],
)
def test_a_token_out_of_its_time_is_refused(changes: dict[str, Any], reason: str) -> None:
    assert reason in why_not(**changes)


@pytest.mark.parametrize("name", ["exp", "nbf", "iat"])
@pytest.mark.parametrize("value", ["", "soon", "1800000600", True, [1], {}, -1, 1e300])
def test_a_time_that_is_none_is_refused(name: str, value: Any) -> None:
    assert f"the token's {name} is" in why_not(**{name: value})


@pytest.mark.parametrize("name", ["exp", "nbf", "iat"])
def test_a_number_that_is_no_time_is_refused(name: str) -> None:
    for value in (10**400, float("inf"), float("-inf"), float("nan")):
        assert why_not(OPEN, **{name: value}) == f"the token's {name} is not a time"


def test_clocks_may_differ_by_half_a_minute() -> None:
    late = read(exp=NOW - LEEWAY_S + 1)
    assert late.expires_ms == (NOW + 1) * 1000
    assert read(nbf=NOW + LEEWAY_S, iat=NOW + LEEWAY_S).client == "cli"


@pytest.mark.parametrize(
    "issuer", [None, "", "https://evil.example", f"{ISSUER}/", ISSUER.upper(), [ISSUER], f" {ISSUER}", 5]
)
def test_another_issuer_is_refused(issuer: Any) -> None:
    assert "another issuer" in why_not(STRICT, iss=issuer)


@pytest.mark.parametrize("audience", [None, "", "https://other.example", f"{AUDIENCE}/", [], ["a", "b"], AUDIENCE[:-1]])
def test_another_audience_is_refused(audience: Any) -> None:
    assert "another audience" in why_not(STRICT, aud=audience)


@pytest.mark.parametrize("audience", [5, {AUDIENCE: 1}, [AUDIENCE, 5], [[AUDIENCE]], True])
def test_an_audience_that_is_no_text_is_refused(audience: Any) -> None:
    assert "neither a text nor a list" in why_not(STRICT, aud=audience)


def test_an_audience_may_be_one_of_several() -> None:
    assert read(STRICT, aud=["https://other.example", AUDIENCE]).client == "cli"


def test_without_expected_issuer_and_audience_any_will_do() -> None:
    assert read(iss=None, aud=None).client == "cli"
    assert read(iss="x", aud=["y"]).client == "cli"


def test_the_resource_of_rfc_8707_must_be_named_as_audience_or_resource() -> None:
    picky = jwt_settings(auth_resource="https://rookery.example/mcp")
    assert "another resource" in why_not(picky, aud="https://other.example")
    assert "another resource" in why_not(picky, aud=None, resource=["https://other.example"])
    assert read(picky, aud="https://other.example", resource="https://rookery.example/mcp").client == "cli"
    assert read(picky, aud=["https://rookery.example/mcp"]).client == "cli"
    both = jwt_settings(auth_audience="api", auth_resource="https://rookery.example/mcp")
    assert "another audience" in why_not(both, aud="https://rookery.example/mcp")
    assert read(both, aud=["api", "https://rookery.example/mcp"]).client == "cli"


@pytest.mark.parametrize(
    ("changes", "client"),
    [
        ({"client_id": "b"}, "b"),
        ({"client_id": None, "cid": "a"}, "a"),
        ({"client_id": "b", "cid": "a"}, "a"),
        ({"client_id": None, "azp": "c"}, "c"),
        ({"client_id": "b", "azp": "c"}, "b"),
        ({"client_id": "", "azp": "c"}, "c"),
    ],
)
def test_the_client_is_read_by_its_usual_names(changes: dict[str, Any], client: str) -> None:
    assert read(**changes).client == client


def test_a_token_without_a_client_is_refused() -> None:
    assert "names no client" in why_not(client_id=None)
    assert "names no client" in why_not(client_id="", cid="", azp="")


@pytest.mark.parametrize("name", ["client_id", "cid", "sub", "tid", "tenant_id"])
@pytest.mark.parametrize("value", [5, True, ["a"], {"a": 1}, "a\nb", "a\0", " a", "x" * 256, "\u202eada"])
def test_a_name_that_is_none_is_refused(name: str, value: Any) -> None:
    assert why_not(**{name: value}) == f"the token's {name} is not a name"


def test_the_tenant_is_the_tokens_or_the_configured_one() -> None:
    assert read().tenant == "default"
    assert read(tid="acme").tenant == read(tenant_id="acme").tenant == "acme"
    assert read(jwt_settings(auth_tenant="acme")).tenant == "acme"
    mapped = jwt_settings(auth_tenant_map=(("8f1c", ("default",)),))
    assert (read(mapped, tid="8f1c").tenant, read(mapped, tid="8f1d").tenant) == ("default", "8f1d")


@pytest.mark.parametrize(
    ("changes", "scopes"),
    [
        ({"scope": "a:b c:d"}, {"a:b", "c:d"}),
        ({"scope": ["a:b", "c:d"]}, {"a:b", "c:d"}),
        ({"scope": None, "scp": ["a:b"]}, {"a:b"}),
        ({"scope": None, "scp": "a:b c:d"}, {"a:b", "c:d"}),
        ({"scope": None, "scopes": "a:b"}, {"a:b"}),
        ({"scope": None, "mcp_tool_scopes": ["a:b"]}, {"a:b"}),
        ({"scope": None, "permissions": ["a:b"]}, {"a:b"}),
        ({"scope": "a", "scp": ["b"], "scopes": "c", "mcp_tool_scopes": "d", "permissions": ["e"]}, set("abcde")),
        ({"scope": "", "scp": ["b"]}, {"b"}),
    ],
)
def test_scopes_are_the_union_of_their_usual_spellings(changes: dict[str, Any], scopes: set[str]) -> None:
    assert read(**changes).scopes == scopes


@pytest.mark.parametrize("changes", [{"scope": None}, {"scope": ""}, {"scope": "  "}, {"scope": []}])
def test_a_token_without_scopes_is_refused_unless_scopes_are_not_checked(changes: dict[str, Any]) -> None:
    assert "has no scopes" in why_not(**changes)
    assert read(jwt_settings(auth_scope_checks=False), **changes).scopes == frozenset()


@pytest.mark.parametrize("name", ["scope", "scp", "scopes", "mcp_tool_scopes", "permissions"])
@pytest.mark.parametrize("value", [5, True, {"*": 1}, ["a", 5], [["*"]], ["a b"], [""], ["ä"], "ä", 'a"b', ["x" * 257]])
def test_scopes_of_another_form_are_refused(name: str, value: Any) -> None:
    assert f"the token's {name}" in why_not(**{name: value})


def test_too_many_scopes_are_refused() -> None:
    assert "too many scopes" in why_not(scope=" ".join(f"a:{number}" for number in range(1001)))


def test_a_subject_is_optional() -> None:
    assert read(sub=None).subject is None
    assert read(sub="").subject is None
    assert read().subject == "ada"


def test_the_present_counts() -> None:
    assert identity_of(claims(), OPEN, time.time()).scopes == {"system:read"}

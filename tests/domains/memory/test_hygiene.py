import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rookery.core.errors import ValidationFailed
from rookery.domains.memory.hygiene import refuse_secrets, secret_in

LETTERS = "aB3dE6gH9jK2mN5pQ8rS1tU4vW7xY0zA"
# Put together here, so that no scanner of this repository takes them for real ones.
SECRETS = {
    "private key": ["-----BEGIN " + kind + "PRIVATE KEY-----\nMIIE" for kind in ("", "RSA ", "OPENSSH ", "EC ")],
    "AWS access key": ["AKIA" + "IOSFODNN7EXAMPLE".replace("7", "2")],
    "GitHub token": ["gh" + kind + "_" + LETTERS + "aBcD" for kind in "pousr"] + ["github_pat_" + LETTERS * 2],
    "GitLab token": ["glpat-" + LETTERS[:20]],
    "Slack token": ["xoxb-" + "123456789012-" + LETTERS[:24]],
    "Slack webhook": ["https://hooks.slack.com/services/" + "T0000000A/B0000000B/" + LETTERS[:24]],
    "Stripe key": ["sk_" + "live_" + LETTERS[:24]],
    "Anthropic key": ["sk-ant-" + "api03-" + LETTERS],
    "OpenAI key": ["sk-" + LETTERS + LETTERS[:16], "sk-proj-" + LETTERS],
    "Google key": ["AIza" + LETTERS + "abC"],
    "npm token": ["npm_" + LETTERS + "aBcD"],
    "PyPI token": ["pypi-Ag" + LETTERS * 2],
    "Hugging Face token": ["hf_" + LETTERS],
    "Rookery token": ["rk_" + LETTERS + LETTERS[:11]],
    "web token": ["eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiIxMjM0NTY3ODkwIn0." + LETTERS],
    "password in an address": ["postgresql://app:" + "hunter2pass@db.internal/shop", "redis://:x" + "@h"][:1],
    "password or key": [
        "password: " + "Tr0ub4dor&3",
        'API_KEY="' + LETTERS[:20] + '"',
        "the api key = " + "f3a9c1d2e4b5a697",
        "access-token: " + LETTERS,
        '{"secret": "' + LETTERS[:16] + '"}',
    ],
}
HARMLESS = [
    "the password is in the vault under shop/database",
    "password: ask Zoe",
    "password: see-the-wiki",
    "API_KEY=${SHOP_API_KEY}",
    "api_key = os.environ['SHOP_KEY_1']",
    "token: <your-token-1>",
    "secret: ********",
    "secret=changeme123",
    "password = getpass.getpass()",
    "postgresql://app:<password>@db/shop and postgresql://app:${PASSWORD}@db/shop",
    "https://example.org:8080/a@b",
    "commit 9fceb02d0ae598e95dc970b74767f19372d61af8 broke it",
    "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "issue SYM-001, run run-01a1e2b3ab2d5d3cf72fa09df0d5faf7",
    "the task-force-of-people-who-look-after-the-release decides",
    "risk-based-authentication-of-every-user-in-the-shop is off",
    "the public key starts with -----BEGIN PUBLIC KEY-----",
    "the secret of a good test is its name",
    "access token: expires after 3600 seconds",
    "token limit: 200000",
    "see secret-rotation.md: rotates every 90 days",
    "the private key: /etc/shop/tls2.key",
    "api key: shop-key-2 of the vendor",
    "npm_config_registry and hf_hub_download are names",
    "sk-learn pipelines",
    "AKIA is what these keys begin with",
]


@pytest.mark.parametrize(("kind", "text"), [(kind, text) for kind, texts in SECRETS.items() for text in texts])
def test_a_secret_is_told_by_its_looks_wherever_it_stands(kind: str, text: str) -> None:
    for around in ("{}", "use {} for it", "first line\n{}\nlast line", "({})", "`{}`"):
        with pytest.raises(ValidationFailed) as caught:
            refuse_secrets("harmless", around.format(text))
        assert kind in caught.value.message
        assert caught.value.hint
        assert text not in caught.value.message + caught.value.hint


@pytest.mark.parametrize("text", HARMLESS)
def test_what_only_speaks_of_secrets_is_kept(text: str) -> None:
    assert secret_in(text) is None


@given(st.text(max_size=300) | st.text(string.ascii_letters + " ", max_size=300))
def test_any_text_is_judged_without_a_fault(text: str) -> None:
    assert secret_in(text) is None or isinstance(secret_in(text), str)

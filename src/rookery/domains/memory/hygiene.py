"""What must not become a memory: secrets. Whoever finds one says its kind and never the secret itself."""

import re

from rookery.core.errors import ValidationFailed

LEAST_LETTERS = 8
_LONE = r"(?<![A-Za-z0-9_\-])"
_KINDS: tuple[tuple[str, str], ...] = (
    ("private key", r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----"),
    ("AWS access key", _LONE + r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}(?![A-Za-z0-9])"),
    ("GitHub token", _LONE + r"(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{50,})"),
    ("GitLab token", _LONE + r"gl(?:pat|dt|rt|cbt|ptt|ft|imt|agent|oas)-[A-Za-z0-9_\-]{20,}"),
    ("Slack token", _LONE + r"xox[abeoprs]-[A-Za-z0-9\-]{10,}"),
    ("Slack webhook", r"hooks\.slack\.com/(?:services|workflows)/[A-Z0-9]{8,}/[A-Za-z0-9/]{8,}"),
    ("Stripe key", _LONE + r"(?:sk|rk)_(?:live|test)_[A-Za-z0-9]{16,}"),
    ("Anthropic key", _LONE + r"sk-ant-[A-Za-z0-9_\-]{20,}"),
    ("OpenAI key", _LONE + r"sk-(?:proj-|svcacct-|admin-)?(?=[A-Za-z_\-]*[0-9])[A-Za-z0-9_\-]{32,}"),
    ("Google key", _LONE + r"AIza[A-Za-z0-9_\-]{35}(?![A-Za-z0-9_\-])"),
    ("npm token", _LONE + r"npm_[A-Za-z0-9]{36}(?![A-Za-z0-9])"),
    ("PyPI token", _LONE + r"pypi-Ag[A-Za-z0-9_\-]{50,}"),
    ("Hugging Face token", _LONE + r"hf_[A-Za-z0-9]{30,}"),
    ("Rookery token", _LONE + r"rk_[A-Za-z0-9_\-]{43}(?![A-Za-z0-9_\-])"),
    ("web token", _LONE + r"eyJ[A-Za-z0-9_\-]{8,}\.eyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]{8,}"),
    ("password in an address", r"\b[a-z][a-z0-9+.\-]{1,20}://[^\s/:@'\"]{1,100}:(?P<password>[^\s/@'\"]{3,200})@"),
    (
        "password or key",
        r"(?i:(?<![a-z])(?:password|passwd|passphrase|secret|(?:api|access|secret|private)[_\- ]?key|"
        r"(?:auth|access|bearer|api|refresh)[_\- ]?token)['\"]?\s{0,3}(?:=|:)\s{0,3})"
        r"(?P<quote>['\"]?)(?P<value>[^\s'\"]{8,200})",
    ),
)
_PATTERNS = [(kind, re.compile(pattern)) for kind, pattern in _KINDS]
_STANDS_FOR = re.compile(
    r"^[<\[{$%*(/~.]|\*{3}|\.{3}|…|x{4,}|process\.env|os\.environ|getenv|secrets?\.|vault|example|changeme|placeholder"
    r"|redacted|your[_\-]|[({]|^(?:password|pass|pwd|secret|token)$",
    re.IGNORECASE,
)


def secret_in(text: str) -> str | None:
    """What kind of secret the text has in it, None if there is none that can be told by its looks."""
    for kind, pattern in _PATTERNS:
        for found in pattern.finditer(text):
            groups = found.groupdict()
            if "password" in groups:
                is_secret = not _STANDS_FOR.search(found["password"])
            else:
                is_secret = "value" not in groups or _random(found["value"])
            if is_secret:
                return kind
    return None


def _random(value: str) -> bool:
    """Whether a value after `password:` is one, and no word, no name like `shop-key-2` and no path of a file."""
    bare = value.rstrip(".,;)")
    if _STANDS_FOR.search(bare) or len(bare) < LEAST_LETTERS:
        return False
    parts = re.split(r"[-_./:]", bare)
    return any(map(str.isdigit, bare)) and not all(part.isalpha() or part.isdigit() or not part for part in parts)


def refuse_secrets(*texts: str) -> None:
    """Stop whoever would keep a secret."""
    for text in texts:
        kind = secret_in(text)
        if kind is not None:
            raise ValidationFailed(
                f"this looks like it has a secret in it: {kind}",
                hint="leave the secret out and note where it is kept, such as the name of its variable",
            )

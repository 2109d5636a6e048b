"""The shop of the pictures: what its repository has, and the two changes that wait for a person."""

from dataclasses import dataclass, field
from pathlib import Path

from rookery.demo.repository import NOBODY, git, make_repository

LOGIN = '''"""Who is at the counter: a customer signs in."""

from shop.accounts import Account, find
from shop.sessions import Session, begin

MOST_ATTEMPTS = 5


def sign_in(address: str, password: str) -> Session | None:
    """A session, or None if the password is wrong or was wrong too often."""
    account = find(address)
    if account is None or account.attempts >= MOST_ATTEMPTS:
        return None
    if not account.has_password(password):
        account.attempts += 1
        return None
    return _entered(account)


def _entered(account: Account) -> Session:
    account.attempts = 0
    return begin(account.id)
'''
BASKET = '''"""What a customer wants to buy."""

from dataclasses import dataclass, field


@dataclass
class Basket:
    lines: dict[str, int] = field(default_factory=dict)
    voucher: str | None = None

    def add(self, product: str, pieces: int = 1) -> None:
        self.lines[product] = self.lines.get(product, 0) + pieces

    def stored(self) -> dict[str, object]:
        return {"lines": self.lines}

    @classmethod
    def restored(cls, kept: dict[str, object]) -> "Basket":
        return cls(lines=dict(kept["lines"]))
'''
TEST_BASKET = """from shop.basket import Basket


def test_pieces_add_up():
    basket = Basket()
    basket.add("shirt")
    basket.add("shirt", 2)
    assert basket.lines == {"shirt": 3}
"""
FILES = {"shop/__init__.py": "", "shop/login.py": LOGIN, "shop/basket.py": BASKET, "tests/test_basket.py": TEST_BASKET}
SENSITIVE = ["shop/login.py", "shop/accounts.py"]

PASSKEY = '''"""Keys that a device keeps instead of a password."""

from shop.accounts import Account, of_key
from shop.challenges import Challenge, take


def account_of(answer: bytes, challenge_id: str) -> Account | None:
    """Whose key has signed the challenge. A challenge is good for one answer."""
    challenge: Challenge | None = take(challenge_id)
    if challenge is None or challenge.expired:
        return None
    account = of_key(answer[:32])
    return account if account and account.key.verifies(answer, challenge.text) else None
'''
TEST_PASSKEY = """from shop.login import sign_in_with_key


def test_an_answer_works_once(device, challenge):
    answer = device.sign(challenge)
    assert sign_in_with_key(answer, challenge.id) is not None
    assert sign_in_with_key(answer, challenge.id) is None


def test_an_old_challenge_is_refused(device, challenge, clock):
    clock.forward(minutes=6)
    assert sign_in_with_key(device.sign(challenge), challenge.id) is None
"""


@dataclass(frozen=True)
class Change:
    """A branch: files that are new, and texts of old ones with what replaces them."""

    name: str
    message: str
    new: dict[str, str] = field(default_factory=dict[str, str])
    edits: dict[str, tuple[tuple[str, str], ...]] = field(default_factory=dict[str, tuple[tuple[str, str], ...]])


CHANGES = (
    Change(
        "passkey",
        "login: a passkey signs a customer in",
        new={"shop/passkey.py": PASSKEY, "tests/test_passkey.py": TEST_PASSKEY},
        edits={
            "shop/login.py": (
                ("from shop.sessions", "from shop.passkey import account_of\nfrom shop.sessions"),
                (
                    "def _entered",
                    'def sign_in_with_key(answer: bytes, challenge_id: str) -> Session | None:\n    """A session of '
                    'whoever owns the key, or None. Wrong passwords do not count here."""\n    account = account_of('
                    "answer, challenge_id)\n    return _entered(account) if account is not None else None\n\n\n"
                    "def _entered",
                ),
            )
        },
    ),
    Change(
        "voucher",
        "basket: the voucher is stored with the lines",
        edits={
            "shop/basket.py": (
                ('{"lines": self.lines}', '{"lines": self.lines, "voucher": self.voucher}'),
                (
                    'cls(lines=dict(kept["lines"]))',
                    'cls(lines=dict(kept["lines"]), voucher=kept.get("voucher"))',
                ),
            ),
            "tests/test_basket.py": (
                (
                    '    assert basket.lines == {"shirt": 3}\n',
                    '    assert basket.lines == {"shirt": 3}\n\n\ndef test_a_voucher_is_kept():\n    basket = Basket('
                    'voucher="SPRING")\n    assert Basket.restored(basket.stored()).voucher == "SPRING"\n',
                ),
            ),
        },
    ),
)


def make_shop(folder: Path) -> None:
    """The repository, with everything committed."""
    make_repository(str(folder))
    for path, text in FILES.items():
        _write(folder / path, text)
    _commit(folder, "shop: customers, and what they want to buy")


def make_branch(repository: Path, tree: Path, branch: str, change: Change) -> None:
    """A worktree in which the change is committed."""
    tree.parent.mkdir(exist_ok=True)
    git(str(repository), "worktree", "add", "--quiet", "-b", branch, str(tree))
    for path, text in change.new.items():
        _write(tree / path, text)
    for path, edits in change.edits.items():
        text = (tree / path).read_text(encoding="utf-8")
        for old, new in edits:
            assert text.count(old) == 1, f"{path} has {old!r} {text.count(old)} times"
            text = text.replace(old, new)
        _write(tree / path, text)
    _commit(tree, change.message)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _commit(tree: Path, message: str) -> None:
    git(str(tree), "add", "--all")
    git(str(tree), *NOBODY, "commit", "--quiet", "--no-verify", f"--message={message}")

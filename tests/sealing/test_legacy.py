"""Texts that corvid-agent encrypted can be read, in both formats (invariant 21)."""

import base64
import hashlib
import os
import traceback
from collections.abc import Callable

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from rookery.core.errors import ValidationFailed
from rookery.sealing.legacy import V1_SALT, LegacyReader

PASSPHRASE = "an old passphrase of more than thirty-two letters"
TEXT = "the crow knows 🐦 where the key is"


def newer(text: str, passphrase: str = PASSPHRASE) -> str:
    salt, nonce = os.urandom(16), os.urandom(12)
    key = hashlib.pbkdf2_hmac("sha256", passphrase.encode(), salt, 600_000)
    return base64.b64encode(salt + nonce + AESGCM(key).encrypt(nonce, text.encode(), None)).decode()


def older(text: str, passphrase: str = PASSPHRASE, salt: bytes = V1_SALT) -> str:
    nonce = os.urandom(12)
    key = hashlib.pbkdf2_hmac("sha256", passphrase.encode(), salt, 100_000)
    return base64.b64encode(nonce + AESGCM(key).encrypt(nonce, text.encode(), None)).decode()


@pytest.mark.parametrize("text", [TEXT, "", "x", "y" * 5000])
def test_both_formats_open(text: str) -> None:
    reader = LegacyReader(PASSPHRASE)
    assert reader.read(newer(text)) == text
    assert reader.read(older(text)) == text


def test_texts_kept_from_long_ago_open() -> None:
    reader = LegacyReader("rook")
    assert reader.read("gcxislt8sMXIDZA/8XS4B1QKgJtiadFOZgpUgJQZe53nV1u/eVIrBGe1aWv7zfNi") == "nest"
    assert reader.read("OOQhQ1rm5gIhwhOdUqg7oYAd7PxWdQIJjO9BVTyZecg=") == "nest"


def test_the_salt_of_a_fork_can_be_given() -> None:
    text = older(TEXT, salt=b"of a fork")
    with pytest.raises(ValidationFailed):
        LegacyReader(PASSPHRASE).read(text)
    assert LegacyReader(PASSPHRASE, v1_salt=b"of a fork").read(text) == TEXT


def test_spaces_around_the_passphrase_and_line_breaks_in_the_text_do_not_matter() -> None:
    packed = older(TEXT)
    assert LegacyReader(f"  {PASSPHRASE}\n").read(f" {packed[:20]}\n{packed[20:]}\n") == TEXT


def test_a_wrong_passphrase_is_refused_and_neither_is_told() -> None:
    with pytest.raises(ValidationFailed) as caught:
        LegacyReader("another magpie").read(newer(TEXT))
    told = traceback.TracebackException.from_exception(caught.value, capture_locals=True)
    assert "magpie" not in "".join(told.format()).replace('LegacyReader("another magpie")', "")
    assert caught.value.hint
    assert "magpie" not in repr(LegacyReader("another magpie"))


@pytest.mark.parametrize("make", [newer, older])
def test_a_changed_or_cut_text_is_refused(make: Callable[[str], str]) -> None:
    packed = bytearray(base64.b64decode(make(TEXT)))
    reader = LegacyReader(PASSPHRASE)
    packed[-1] ^= 1
    for damaged in (bytes(packed), bytes(packed[:-1]), bytes(packed[:30])):
        with pytest.raises(ValidationFailed):
            reader.read(base64.b64encode(damaged).decode())


@pytest.mark.parametrize("text", ["", "plain words", "ünïcode", "AAAA", "=" * 40, base64.b64encode(bytes(27)).decode()])
def test_what_was_never_encrypted_is_refused_at_once(text: str) -> None:
    with pytest.raises(ValidationFailed, match="no old text"):
        LegacyReader(PASSPHRASE).read(text)

"""Texts that corvid-agent encrypted, in both of its formats. They are only read: what is written is sealed anew.

Both are base64. The newer one is a random salt of 16 bytes, a nonce of 12, then AES-256-GCM under a key that PBKDF2
makes of the passphrase; the older one has the same salt in every installation, and so no salt in the text.
"""

import base64
import binascii
import hashlib

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from rookery.core.errors import ValidationFailed

SALT_BYTES, NONCE_BYTES, TAG_BYTES, KEY_BYTES = 16, 12, 16, 32
V2_ROUNDS, V1_ROUNDS = 600_000, 100_000
V1_SALT = b"corvid-agent-wallet-encryption"
"""The salt of every published version that wrote the older format. A fork may have had another."""


class LegacyReader:
    """Reads the old texts of one passphrase. Blocks: each newer text costs 600,000 rounds of hashing."""

    __slots__ = ("_passphrase", "_v1_key", "_v1_salt")

    def __init__(self, passphrase: str, *, v1_salt: bytes = V1_SALT) -> None:
        # The spaces around it were never part of it.
        self._passphrase = passphrase.strip().encode("utf-8", "replace")
        self._v1_salt = v1_salt
        self._v1_key: bytes | None = None

    def __repr__(self) -> str:
        return "LegacyReader(***)"

    def read(self, text: str) -> str:
        """The plain text, whichever format it is in. A wrong passphrase or a damaged text is a ValidationFailed."""
        packed = _unpacked(text)
        plain = self._newer(packed)
        if plain is None:
            plain = self._older(packed)
        if plain is None:
            raise ValidationFailed(
                "an old text does not open: the passphrase is another one, or the text was changed",
                hint="the passphrase was WALLET_ENCRYPTION_KEY or, without it, the server's mnemonic",
            )
        return plain

    def _newer(self, packed: bytes) -> str | None:
        if len(packed) < SALT_BYTES + NONCE_BYTES + TAG_BYTES:
            return None
        key = hashlib.pbkdf2_hmac("sha256", self._passphrase, packed[:SALT_BYTES], V2_ROUNDS, KEY_BYTES)
        return _decrypted(key, packed[SALT_BYTES:])

    def _older(self, packed: bytes) -> str | None:
        if self._v1_key is None:
            self._v1_key = hashlib.pbkdf2_hmac("sha256", self._passphrase, self._v1_salt, V1_ROUNDS, KEY_BYTES)
        return _decrypted(self._v1_key, packed)


def _unpacked(text: str) -> bytes:
    try:
        packed = base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError):
        packed = b""
    if len(packed) < NONCE_BYTES + TAG_BYTES:
        raise ValidationFailed("this is no old text of a memory", hint="it must be base64 of at least 28 bytes")
    return packed


def _decrypted(key: bytes, packed: bytes) -> str | None:
    """None if the key is another one or a byte was changed."""
    try:
        return AESGCM(key).decrypt(packed[:NONCE_BYTES], packed[NONCE_BYTES:], None).decode("utf-8", "replace")
    except InvalidTag:
        return None

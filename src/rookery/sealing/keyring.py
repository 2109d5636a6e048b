"""The keyring: one secret, and from it a key for every purpose.

A text is sealed with AES-256-GCM under a fresh random nonce. Its row's identity goes in as associated data, so a
sealed text that was moved to another row, another column or another purpose does not open.
"""

import hmac
import os

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

from rookery.core.errors import ConfigurationError, ValidationFailed
from rookery.sealing.key_file import read_key_file
from rookery.settings import Settings

FORMAT = b"\x01"
NONCE_BYTES, TAG_BYTES, KEY_BYTES = 12, 16, 32
SHORTEST_MASTER = 32
# 80 bits: among 10 million different words the chance that any two meet is below one in a billion.
BLIND_BYTES = 10
_SALT = b"rookery sealing 1"


class Keyring:
    """Seals, opens and blinds. One object serves all threads; nothing of it can be printed."""

    __slots__ = ("_blinding", "_root", "_sealing", "fingerprint")

    fingerprint: str
    """Tells keys apart and reveals nothing of them."""

    def __init__(self, master: bytes) -> None:
        if len(master) < SHORTEST_MASTER:
            raise ConfigurationError(
                f"a key of {len(master)} bytes can be guessed", hint=f"use at least {SHORTEST_MASTER} random bytes"
            )
        self._root = hmac.digest(_SALT, master, "sha256")
        self._sealing: dict[str, AESGCM] = {}
        self._blinding: dict[str, bytes] = {}
        self.fingerprint = self._derive("fingerprint", "")[:8].hex()

    def __repr__(self) -> str:
        return f"Keyring({self.fingerprint})"

    def __reduce_ex__(self, protocol: object) -> str:
        raise TypeError("a keyring stays in its process")

    def seal(self, purpose: str, text: str, about: str) -> bytes:
        """The text as bytes that only `open` reads, with the same purpose and the same `about`: the row's identity.

        The same text is sealed differently each time. The result is 29 bytes longer than the text.
        """
        nonce = os.urandom(NONCE_BYTES)
        return FORMAT + nonce + self._cipher(purpose).encrypt(nonce, _utf8(text), _bound(about))

    def open(self, purpose: str, sealed: bytes, about: str) -> str:
        """The text that was sealed. Another key, purpose or row, or a changed byte, is a ConfigurationError."""
        start = len(FORMAT) + NONCE_BYTES
        if len(sealed) < start + TAG_BYTES or sealed[: len(FORMAT)] != FORMAT:
            raise ConfigurationError("a sealed text is damaged", hint="restore it from a backup")
        try:
            return self._cipher(purpose).decrypt(sealed[len(FORMAT) : start], sealed[start:], _bound(about)).decode()
        except InvalidTag:
            raise ConfigurationError(
                "a sealed text does not open: another key sealed it, or it was changed",
                hint="rookery doctor says whether the key is the right one",
            ) from None

    def blind(self, purpose: str, text: str) -> str:
        """A word of 20 hexadecimal digits that stands for the text: the same text, the same word, and no way back.

        For index tokens and for lookups by a hidden key. Each purpose has words of its own.
        """
        key = self._blinding.get(purpose)
        if key is None:
            key = self._blinding[purpose] = self._derive("blind", purpose)
        return hmac.digest(key, _utf8(text), "sha256")[:BLIND_BYTES].hex()

    def _cipher(self, purpose: str) -> AESGCM:
        cipher = self._sealing.get(purpose)
        if cipher is None:
            cipher = self._sealing[purpose] = AESGCM(self._derive("seal", purpose))
        return cipher

    def _derive(self, use: str, purpose: str) -> bytes:
        return HKDFExpand(SHA256(), KEY_BYTES, f"{use}:{purpose}".encode()).derive(self._root)


def load_keyring(settings: Settings) -> Keyring | None:
    """The keyring that the settings name, None if they name none. Wrong words or an open key file stop the start."""
    if settings.mnemonic.strip() and settings.key_file:
        raise ConfigurationError(
            "mnemonic and key_file are both set", hint="keep the one that sealed what is stored, and unset the other"
        )
    if settings.key_file:
        return Keyring(read_key_file(os.path.join(settings.home, os.path.expanduser(settings.key_file))))
    if not settings.mnemonic.strip():
        return None
    # Its word lists are read only where there are words.
    from rookery.sealing import mnemonic

    fault = mnemonic.fault_of(settings.mnemonic)
    if fault:
        raise ConfigurationError(
            f"the mnemonic {fault}", hint="set ROOKERY_MNEMONIC to the words as they were written down, in their order"
        )
    return Keyring(mnemonic.seed_of(settings.mnemonic))


def _bound(about: str) -> bytes:
    return FORMAT + _utf8(about)


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        # The error of Python carries the whole text.
        raise ValidationFailed(
            "the text has half of a character in it", hint="send it as valid Unicode, without lone surrogates"
        ) from None

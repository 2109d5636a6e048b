"""From one key to the next, text by text. Which rows, and in what order, is for those who have the rows."""

from rookery.sealing.keyring import Keyring


def reseal(old: Keyring, new: Keyring, purpose: str, sealed: bytes, about: str) -> bytes:
    """The same text under the new key, for the same purpose and row. What the old key does not open is refused."""
    return new.seal(purpose, old.open(purpose, sealed, about), about)

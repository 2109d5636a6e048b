"""What a row of a memory has of its key and content: plain, or sealed for this row alone."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from rookery.core.errors import ConfigurationError
from rookery.db.tx import Tx
from rookery.domains.memory.words import Owner
from rookery.sealing.key_table import current_version, refuse_plain
from rookery.sealing.keyring import Keyring

CONTENT, KEYS, HIDDEN_KEYS = "memory-content", "memory-key-texts", "memory-keys"


@dataclass(frozen=True, slots=True)
class RowSeal:
    """Seals and opens rows. Without a keyring all is plain; `hide_keys` needs one."""

    keyring: Keyring | None = None
    hide_keys: bool = False

    @property
    def hides(self) -> bool:
        return self.hide_keys and self.keyring is not None

    def places(self, owner: Owner, key: str) -> Sequence[str]:
        """The values of the column `key` that a memory with this key may have, that of today first."""
        if self.keyring is None:
            return [key]
        hidden = self.keyring.blind(HIDDEN_KEYS, f"{owner.tenant}\0{owner.name}\0{key}")
        return [hidden, key] if self.hide_keys else [key, hidden]

    def columns(self, tx: Tx, owner: Owner, memory_id: str, key: str, content: str) -> dict[str, Any]:
        """The columns of a row that say what is remembered."""
        place = self.places(owner, key)[0]
        if self.keyring is None:
            refuse_plain(tx)
            return {"key": place, "sealed_key": None, "content": content.encode(), "key_version": None}
        about = _about(owner, memory_id)
        return {
            "key": place,
            "sealed_key": self.keyring.seal(KEYS, key, about) if self.hide_keys else None,
            "content": self.keyring.seal(CONTENT, content, about),
            "key_version": current_version(tx, self.keyring),
        }

    def key_of(self, row: sa.Row[Any]) -> str:
        """The key of a memory as its owner gave it."""
        return row.key if row.sealed_key is None else self._keyring().open(KEYS, row.sealed_key, _of(row))

    def content_of(self, row: sa.Row[Any]) -> str:
        """What is remembered. What another key sealed is a ConfigurationError."""
        if row.key_version is None:
            return row.content.decode()
        return self._keyring().open(CONTENT, row.content, _of(row))

    def _keyring(self) -> Keyring:
        if self.keyring is None:
            raise ConfigurationError(
                "this memory is sealed, and the server has no key",
                hint="start the server with the ROOKERY_MNEMONIC or the key file that sealed it",
            )
        return self.keyring


def _of(row: sa.Row[Any]) -> str:
    return _about(Owner(row.tenant, row.owner), row.id)


def _about(owner: Owner, memory_id: str) -> str:
    return f"{owner.tenant}\0{owner.name}\0{memory_id}"

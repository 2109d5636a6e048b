"""What a plugin may keep without a table of its own: values by key, for its tenant and its domain alone."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from rookery.core.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class KeyPage:
    """One page of keys, in order. `cursor` continues after it; None: there are no more."""

    keys: list[str]
    cursor: str | None = None


class Storage(Protocol):
    """Values by key. Every key is one of this tenant and this domain: nobody else's can be reached or guessed.

    A key has 1 to 1,024 characters of `A-Z a-z 0-9 _ . - /` and no `..`; a value is whatever JSON can say, up to
    1 MiB. Whatever breaks a limit is ValidationFailed.
    """

    def get(self, key: str, default: Any = None) -> Any:
        """The value, or `default` if there is none. What a write handler has read stays so until it is committed:
        no other call changes the storage of this domain in between."""
        ...

    def set(self, key: str, value: Any, ttl_s: float | None = None) -> None:
        """Keep `value`, instead of any older one, for `ttl_s` seconds or for good. 0 seconds: it is gone at once."""
        ...

    def delete(self, key: str) -> bool:
        """Whether there was a value to forget."""
        ...

    def list(self, prefix: str = "", limit: int = 1000, cursor: str | None = None) -> KeyPage:
        """Up to `limit` keys (1 to 10,000) that begin with `prefix`, in the order of their ASCII codes.

        `cursor` is that of the page before. One of another prefix, domain or tenant is refused.
        """
        ...

    def get_many(self, keys: Iterable[str]) -> dict[str, Any]:
        """The values of those of up to 1,000 keys that have one."""
        ...

    def set_many(self, values: Mapping[str, Any], ttl_s: float | None = None) -> None:
        """`set` for up to 1,000 keys."""
        ...

    def delete_many(self, keys: Iterable[str]) -> int:
        """How many of up to 1,000 keys had a value to forget."""
        ...


class OpenStorage(Protocol):
    """Makes the storage of one tenant and domain on an open transaction. `writable`: whether it takes changes."""

    def __call__(self, tx: Any, tenant: str, domain: str, *, writable: bool) -> Storage: ...


def no_storage(tx: Any, tenant: str, domain: str, *, writable: bool) -> Storage:
    """For call paths that were put together without any."""
    raise ConfigurationError("this call path has no storage", hint="hand it one: rookery.db.storage")

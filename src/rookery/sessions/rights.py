"""Remembers who the agents of sessions are, until somebody changes an identity or their time is over."""

import time
from collections import OrderedDict

from rookery.core.actor import Actor
from rookery.db.tx import Tx
from rookery.identity.binding import Binding
from rookery.identity.resolve import Resolved, Resolver

MOST = 1_000


class Rights:
    """What was looked up for the bindings that were used last. Used by any thread."""

    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver
        self._known: OrderedDict[Binding, tuple[int, Resolved]] = OrderedDict()

    def of(self, tx: Tx, binding: Binding, epoch: int | None = None) -> Actor:
        """Who a session with this binding is. `epoch` counts the changes of identities that were known before this
        look, so that what changes meanwhile is looked at again; without it nothing is remembered."""
        known = self._known.get(binding) if epoch is not None else None
        if known is not None and known[0] == epoch and not _outdated(known[1]):
            return known[1].actor
        resolved = self._resolver.resolve(tx, binding)
        if epoch is not None:
            self._known[binding] = (epoch, resolved)
            while len(self._known) > MOST:
                self._known.popitem(last=False)
        return resolved.actor


def _outdated(resolved: Resolved) -> bool:
    until = resolved.good_until_ms
    return until is not None and time.time_ns() // 1_000_000 >= until

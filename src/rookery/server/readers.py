"""Clients that do not read. What is meant for them waits in the connection, which not even closing it would end."""

import asyncio

from rookery.server.heads import LimitedHeads

# A client of which nothing is heard twice in a row has gone, whatever its connection says.
LOOK_S = 15.0


class LimitedPatience(LimitedHeads):
    """Ends a connection, and with it what is written there, once its client has not read for two looks."""

    _look: asyncio.TimerHandle | None = None
    _unread = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._look = self.loop.call_later(LOOK_S, self._see)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._look is not None:
            self._look.cancel()
        super().connection_lost(exc)

    def _see(self) -> None:
        before, self._unread = self._unread, self.transport.get_write_buffer_size()
        if self._unread and self._unread == before:
            self.transport.abort()
            return
        self._look = self.loop.call_later(LOOK_S, self._see)

"""A proxy that sends every request to the next of several servers, as one without sticky sessions does."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Sequence

LIMIT = 1 << 16


class RoundRobin:
    """`served` counts the requests by the place of their server in the row."""

    def __init__(self, ports: Sequence[int]) -> None:
        self._ports = ports
        self._turn = 0
        self.port = 0
        self.served: Counter[int] = Counter()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One request and its answer, after which the connection ends; whoever goes first takes the other along."""
        there: asyncio.StreamWriter | None = None
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            index, self._turn = self._turn, (self._turn + 1) % len(self._ports)
            self.served[index] += 1
            back, there = await asyncio.open_connection("127.0.0.1", self._ports[index])
            there.write(head[:-2] + b"connection: close\r\n\r\n")
            ways = [asyncio.create_task(_pass_on(reader, there)), asyncio.create_task(_pass_on(back, writer))]
            try:
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for way in ways:
                    way.cancel()
                await asyncio.gather(*ways, return_exceptions=True)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            ends = [end for end in (writer, there) if end is not None]
            for end in ends:
                end.close()
            await asyncio.gather(*(end.wait_closed() for end in ends), return_exceptions=True)


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while part := await reader.read(LIMIT):
            writer.write(part)
            await writer.drain()


@contextlib.asynccontextmanager
async def round_robin(*ports: int) -> AsyncIterator[RoundRobin]:
    """A proxy before the servers on these ports, on a port of its own."""
    proxy = RoundRobin(ports)
    running: set[asyncio.Task[None]] = set()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(proxy.serve(reader, writer))
        running.add(task)
        task.add_done_callback(running.discard)

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    proxy.port = server.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        server.close()
        for task in list(running):
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

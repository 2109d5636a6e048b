"""A server that keeps dying: whenever it does, the client gets one answer to each call, in whole lines."""

import json
import random
from collections import Counter
from threading import Event

import pytest

from tests.relay.peers import INITIALIZE, INITIALIZED, Client, Connection, Server, answer, call, meanwhile

DEATHS = 20
BURSTS_AT_MOST = 1000


class Flaky:
    """Answers calls until a moment of chance, then closes in the middle of an answer."""

    def __init__(self, server: Server, chance: random.Random) -> None:
        self.server, self.chance = server, chance
        self.ran: Counter[object] = Counter()
        self.deaths = 0
        self.done = Event()

    def run(self) -> None:
        self.server.listener.settimeout(0.1)
        while not self.done.is_set():
            try:
                connection = self.server.accept()
            except TimeoutError:
                continue
            self.session(connection)
            connection.die()
            self.deaths += 1

    def session(self, connection: Connection) -> None:
        assert connection.next() == INITIALIZE, "a session begins with its introduction"
        connection.send(answer(0))
        assert connection.next() == INITIALIZED
        while (line := connection.lines.raw()).endswith(b"\n"):
            request_id = json.loads(line)["id"]
            self.ran[request_id] += 1
            reply = json.dumps(answer(request_id, text="r" * self.chance.randrange(3000))).encode() + b"\n"
            if self.chance.random() < 0.05:
                connection.send(reply[: self.chance.randrange(len(reply))])
                return
            connection.send(reply)


@pytest.mark.parametrize("seed", range(4))
def test_every_call_is_answered_once_and_runs_at_most_once(client: Client, server: Server, seed: int) -> None:
    chance, flaky = random.Random(seed), Flaky(server, random.Random(~seed))
    serving = meanwhile(flaky.run)
    client.send(INITIALIZE, INITIALIZED)
    assert client.next() == answer(0)
    for burst in range(BURSTS_AT_MOST):
        ids = range(burst * 10 + 1, burst * 10 + 11)
        for request_id in ids:
            line = json.dumps(call(request_id, text="c" * chance.randrange(3000))).encode() + b"\n"
            cut = chance.randrange(len(line))
            client.send(line[:cut], line[cut:])
        assert Counter(client.next()["id"] for _ in ids) == Counter(ids)
        if flaky.deaths >= DEATHS:
            break
    flaky.done.set()
    assert client.end()[:2] == (0, b"")
    serving.join()
    assert flaky.deaths >= DEATHS
    assert set(flaky.ran.values()) == {1}

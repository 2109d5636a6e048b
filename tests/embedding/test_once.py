"""The model is loaded when it is first needed, and once."""

import threading

from rookery.embedding.embedder import Embedder, once


def test_however_many_threads_ask_it_is_loaded_once() -> None:
    loaded: list[int] = []
    together = threading.Barrier(8)

    def load() -> Embedder | None:
        loaded.append(1)
        return None

    get = once(load)

    def ask() -> None:
        together.wait(10)
        assert get() is None

    threads = [threading.Thread(target=ask) for _ in range(8)]
    assert loaded == []
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert loaded == [1]

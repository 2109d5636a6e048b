"""Refuses every address but those that the running test has opened, and remembers who was tried to be reached.

A domain whose tools talk with the outside world imports the fixture `nowhere_else` into its conftest.
"""

import ipaddress
import socket
import sys
from collections.abc import Iterator
from typing import Any

import pytest

_LOOK_UPS = frozenset({"socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"})
_SENDINGS = frozenset({"socket.connect", "socket.sendto", "socket.sendmsg"})


class Watch:
    """What one test has opened, and what it tried besides."""

    def __init__(self) -> None:
        self.tried: list[str] = []
        self._ports: set[int] = set()

    def opened(self, place: Any) -> None:
        """From now on this may be reached; also after it was closed, since then nobody is there."""
        if isinstance(place, tuple):
            self._ports.add(place[1])

    def check(self, event: str, arguments: tuple[Any, ...]) -> None:
        """PermissionError for anything else. A path of this machine's file system is no address of a network."""
        if event in _LOOK_UPS:
            name = _text(arguments[0])
            if not (name in ("", "localhost") or _number(name)):
                self._refuse(name)
        elif event in _SENDINGS and isinstance(arguments[1], tuple):
            host, port = _text(arguments[1][0]), arguments[1][1]
            number = _number(host)
            if not (host == "localhost" or (number and number.is_loopback)) or port not in self._ports:
                self._refuse(f"{host}:{port}")

    def _refuse(self, place: str) -> None:
        self.tried.append(place)
        raise PermissionError(f"{place} was not opened by this test")


_watches: list[Watch] = []


def _hear(event: str, arguments: tuple[Any, ...]) -> None:
    """An audit hook of Python: it hears of every connection before it is made. It cannot be taken out again."""
    if _watches and event.startswith("socket."):
        _watches[-1].check(event, arguments)


sys.addaudithook(_hear)


@pytest.fixture(autouse=True)
def nowhere_else(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What a test tried to reach besides what it opened: refused, and the test fails unless it expected that."""
    watch = Watch()
    bind = socket.socket.bind

    def bound(self: socket.socket, place: Any, /) -> None:
        bind(self, place)
        watch.opened(self.getsockname())

    monkeypatch.setattr(socket.socket, "bind", bound)
    _watches.append(watch)
    yield watch.tried
    _watches.remove(watch)
    assert watch.tried == []


def _text(host: Any) -> str:
    return host.decode() if isinstance(host, bytes) else str(host or "")


def _number(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return None

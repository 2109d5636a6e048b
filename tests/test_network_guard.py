"""The guard of the tests that talk with servers: only what a test has opened can be reached."""

import socket
from collections.abc import Callable

import pytest

from tests.network_guard import nowhere_else

__all__ = ["nowhere_else"]


def datagram(place: tuple[str, int]) -> None:
    with socket.socket(type=socket.SOCK_DGRAM) as sender:
        sender.sendto(b"x", place)


def connection(place: tuple[str, int]) -> None:
    socket.create_connection(place, 5).close()


@pytest.mark.parametrize("way", [connection, datagram])
@pytest.mark.parametrize("place", [("192.0.2.7", 443), ("127.0.0.1", 9), ("10.0.0.1", 80)])
def test_an_address_that_was_not_opened_is_refused_and_remembered(
    way: Callable[[tuple[str, int]], None], place: tuple[str, int], nowhere_else: list[str]
) -> None:
    with pytest.raises(PermissionError, match="was not opened by this test"):
        way(place)
    assert nowhere_else == [f"{place[0]}:{place[1]}"]
    nowhere_else.clear()


def test_another_address_is_refused_also_at_a_port_that_was_opened(nowhere_else: list[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, pytest.raises(PermissionError):
        connection(("192.0.2.7", server.getsockname()[1]))
    nowhere_else.clear()


def test_no_name_is_looked_up(nowhere_else: list[str]) -> None:
    with pytest.raises(PermissionError):
        socket.getaddrinfo("api.example", 443)
    with pytest.raises(PermissionError):
        socket.gethostbyname("www.example")
    assert nowhere_else == ["api.example", "www.example"]
    nowhere_else.clear()


def test_what_the_test_opened_is_reached_by_number_and_by_name() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        connection(("127.0.0.1", port))
        connection(("localhost", port))


def test_what_the_test_has_closed_again_is_not_there_and_no_trespass() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(ConnectionRefusedError):
        connection(("127.0.0.1", port))

"""Tells something by Apprise. Run as a process of its own, which may connect where the guard lets it and start nothing.

Reads one JSON object from its input and writes one word: sent, refused, blocked, wrong, missing, or fine for a check.
"""

import importlib
import ipaddress
import json
import os
import signal
import socket
import sys
from typing import Any

from rookery.outgoing.places import Allowed, is_public

_CONNECTS = frozenset({"socket.connect", "socket.sendto", "socket.sendmsg"})
_STARTS = ("subprocess.", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "pty.spawn", "ctypes.dlopen")


class Guard:
    """Sees what the interpreter is about to do. Once set, it cannot be taken away, whatever a library tries."""

    def __init__(self, allow: list[str]) -> None:
        self.blocked = False
        self._allowed = Allowed(allow)
        # Apprise looks names up by itself, so what the owner allowed by name is known here by its addresses.
        self._places = {place for entry in allow for place in _places_of(entry)}

    def __call__(self, event: str, args: tuple[Any, ...]) -> None:
        if event in _CONNECTS:
            self._connects(args[1])
        elif event.startswith(_STARTS):
            self._block()

    def _connects(self, target: Any) -> None:
        if target is not None and not self._may_reach(target):
            self._block()

    def _may_reach(self, target: Any) -> bool:
        try:
            address, port = ipaddress.ip_address(str(target[0])), int(target[1])
        except (TypeError, ValueError, IndexError):
            # A socket of this machine, or a name that nobody has looked up and checked.
            return False
        named = not self._places.isdisjoint({(str(address), port), (str(address), 0)})
        return named or is_public(address) or self._allowed.address(address)

    def _block(self) -> None:
        self.blocked = True
        raise PermissionError("this process may not do that")


def _places_of(entry: str) -> set[tuple[str, int]]:
    """The addresses and the port of an allowed name; port 0 stands for any. Networks have none here."""
    if "/" in entry:
        return set()
    host, colon, port = entry.rpartition(":") if not entry.endswith("]") else (entry, "", "")
    name, number = (host, int(port)) if colon and port.isdigit() else (entry, 0)
    try:
        found = socket.getaddrinfo(name.strip("[]"), None, type=socket.SOCK_STREAM)
    except OSError:
        return set()
    return {(str(each[4][0]), number) for each in found}


def tell(order: dict[str, Any]) -> str:
    """Do what the order says, and a word on how it went."""
    try:
        service: Any = importlib.import_module("apprise").Apprise()
    except ImportError:
        return "missing"
    guard = Guard(order["allow"])
    sys.addaudithook(guard)
    if not service.add(order["url"]):
        return "wrong"
    if order["check"]:
        return "fine"
    taken = service.notify(title=order["title"], body=order["body"], notify_type=order["level"], body_format="text")
    return "sent" if taken and not guard.blocked else "blocked" if guard.blocked else "refused"


def main() -> None:
    """Do what the input says. Nothing but our own word goes out, and nothing runs on when nobody waits any more."""
    order = json.load(sys.stdin)
    # Whoever started this may have been killed; the signal ends the process whatever a library is at.
    signal.alarm(order["within_s"])
    answer = os.dup(1)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.write(answer, tell(order).encode())


if __name__ == "__main__":
    main()

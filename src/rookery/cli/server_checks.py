"""The doctor's checks of a running server: its socket and its port."""

import contextlib
import errno
import http.client
import os
import socket
import stat

from rookery.cli.machine import Finding, Machine
from rookery.relay import socket_path
from rookery.server.address import is_live

PATIENCE_S = 2.0


def check_socket(machine: Machine) -> Finding:
    path = socket_path(machine.settings.home)
    try:
        found = os.lstat(path)
    except OSError:
        return Finding("socket", "ok", "No server is running on this home; sessions serve themselves, more slowly.")
    if not stat.S_ISSOCK(found.st_mode):
        return Finding("socket", "problem", f"{path} is not a socket.", f"move {path} away")
    if found.st_uid != os.geteuid() or found.st_mode & 0o077:
        sentence = f"Other users can reach {path}."
        return Finding("socket", "problem", sentence, f"chmod 600 {path}, or stop the server and remove it")
    if not is_live(path):
        sentence = f"{path} was left by a server that is gone; sessions serve themselves."
        return Finding("socket", "note", sentence, "the next rookery up removes it")
    return Finding("socket", "ok", f"A server answers on {path}.")


def check_port(machine: Machine) -> Finding:
    host, port = machine.settings.host, machine.settings.port
    try:
        _try_to_bind(host, port)
    except OSError as error:
        other = port + 1 if port < 65535 else port - 1
        mend = f"PORT={other} rookery up, or rookery up --port {other}"
        if error.errno != errno.EADDRINUSE:
            return Finding("port", "problem", f"{host}:{port} cannot be used: {error.strerror}.", mend)
        if not _is_rookery(host, port):
            return Finding("port", "problem", f"Another program holds {host}:{port}.", mend)
        if not is_live(socket_path(machine.settings.home)):
            return Finding("port", "problem", f"The Rookery of another home holds {host}:{port}.", mend)
        return Finding("port", "ok", f"{host}:{port} is held by the server of this home.")
    return Finding("port", "ok", f"{host}:{port} is free.")


def _try_to_bind(host: str, port: int) -> None:
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))


def _is_rookery(host: str, port: int) -> bool:
    """Whether people sign in to a Rookery at this port."""
    connection = http.client.HTTPConnection(host, port, timeout=PATIENCE_S)
    with contextlib.closing(connection), contextlib.suppress(OSError, http.client.HTTPException):
        connection.request("GET", "/sign-in")
        return b"Rookery</title>" in connection.getresponse().read(4096)
    return False

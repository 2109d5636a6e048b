"""The PostgreSQL of one test run: `postgres_server.py FOLDER`, started once by the run's main process.

It starts nothing until somebody connects to the unix socket FOLDER/ask. The first who does starts PostgreSQL,
and everyone is answered with one JSON object: `host` (its socket folder) and `user`, or `error`. When
standard input closes, which it does however the run ends, PostgreSQL is stopped and FOLDER removed.
"""

import contextlib
import glob
import json
import os
import pwd
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

USER = "rookery"
START_LIMIT_S = 60
MISSING = (
    "there is no initdb on the PATH or in /usr/lib/postgresql: install PostgreSQL 13 or newer "
    "(Debian: apt-get install postgresql); the tests of stores and tools run on it as well as on SQLite"
)


class StartError(Exception):
    """PostgreSQL cannot be had; the message says why."""


def programs() -> Path:
    """The folder with initdb and postgres, of the newest version installed."""
    on_path = shutil.which("initdb")
    if on_path:
        return Path(on_path).resolve().parent
    installed = glob.glob("/usr/lib/postgresql/*/bin/initdb")
    if not installed:
        raise StartError(MISSING)
    return Path(max(installed, key=lambda name: float(name.split("/")[4]))).parent


class Account(NamedTuple):
    """Whom to run as; None is whoever runs the tests."""

    user: int | None = None
    group: int | None = None
    extra_groups: list[int] | None = None


def account() -> Account:
    """The user that PostgreSQL's package makes, for tests run as root: PostgreSQL refuses root."""
    if os.geteuid() != 0:
        return Account()
    try:
        entry = pwd.getpwnam("postgres")
    except KeyError:
        raise StartError("tests run as root need the user postgres, which PostgreSQL's package makes") from None
    return Account(entry.pw_uid, entry.pw_gid, [])


def make_cluster(bin_folder: Path, data: Path, who: Account) -> None:
    data.mkdir(mode=0o700)
    if who.user is not None and who.group is not None:
        os.chown(data, who.user, who.group)
    command = [bin_folder / "initdb", "-D", data, "-U", USER, "--auth=trust", "--no-sync"]
    command += ["--encoding=UTF8", "--locale=C"]
    # Text sorts as on an ordinary installation, so that a query which relies on byte order is found out.
    listed = subprocess.run([command[0], "--help"], capture_output=True, text=True, check=True).stdout
    if "--icu-locale" in listed:
        command += ["--locale-provider=icu", "--icu-locale=en-US"]
    made = subprocess.run(
        command,
        cwd=data,
        capture_output=True,
        text=True,
        timeout=START_LIMIT_S,
        user=who.user,
        group=who.group,
        extra_groups=who.extra_groups,
    )
    if made.returncode:
        raise StartError(f"initdb failed: {(made.stderr or made.stdout).strip()[-600:]}")


def ready(data: Path) -> bool:
    try:
        return "ready" in (data / "postmaster.pid").read_text().split()
    except OSError:
        return False


def start(folder: Path) -> subprocess.Popen[bytes]:
    """A running PostgreSQL that accepts connections on a unix socket in FOLDER/data and nowhere else."""
    data = folder / "data"
    bin_folder, who = programs(), account()
    make_cluster(bin_folder, data, who)
    command = [bin_folder / "postgres", "-D", data, "-k", data]
    for setting in ("listen_addresses=", "max_connections=200", "max_wal_size=256MB"):
        command += ["-c", setting]
    with (folder / "log").open("wb") as output:
        server = subprocess.Popen(
            command,
            cwd=data,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            user=who.user,
            group=who.group,
            extra_groups=who.extra_groups,
        )
    try:
        wait_until_ready(server, folder)
    except BaseException:
        stop(server)
        raise
    return server


def wait_until_ready(server: subprocess.Popen[bytes], folder: Path) -> None:
    limit = time.monotonic() + START_LIMIT_S
    while not ready(folder / "data"):
        if server.poll() is not None or time.monotonic() > limit:
            log = (folder / "log").read_text(errors="replace")
            raise StartError(f"postgres did not start: {log[-600:]}")
        time.sleep(0.02)


def stop(server: subprocess.Popen[bytes]) -> None:
    # Nobody reads these files again, so that the checkpoint of a gentler signal would be for nothing.
    server.send_signal(signal.SIGQUIT)
    try:
        server.wait(10)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


def serve(folder: Path, servers: list[subprocess.Popen[bytes]]) -> None:
    """Answer until standard input closes; a server that was started is in `servers`."""
    answer: dict[str, str] = {}
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(str(folder / "ask"))
        door.listen(64)
        while sys.stdin not in (readable := select.select([sys.stdin, door], [], [])[0]):
            if door not in readable:
                continue
            caller, _ = door.accept()
            if not answer:
                try:
                    servers.append(start(folder))
                    answer = {"host": str(folder / "data"), "user": USER}
                except (StartError, OSError, subprocess.SubprocessError) as error:
                    answer = {"error": str(error)}
            # A worker that has died meanwhile is no reason to take the server from the others.
            with caller, contextlib.suppress(OSError):
                caller.sendall(json.dumps(answer).encode())


def main(folder: Path) -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    servers: list[subprocess.Popen[bytes]] = []
    # The account that PostgreSQL runs as must reach its own folder below this one.
    folder.chmod(0o711)
    try:
        serve(folder, servers)
    finally:
        for server in servers:
            stop(server)
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))

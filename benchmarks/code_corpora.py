"""Large trees of source files to index: a package of PyPI and one of npm. What cannot be had is left out."""

import shutil
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

from benchmarks.launch import ROOT
from benchmarks.peer_install import UnavailableError, run

FOLDER = ROOT / "build" / "corpora"
DJANGO, ANTD = "django==5.2", "antd@5.26.0"


def django() -> Path:
    """Django as it is published in source, tests and all."""
    pip = (sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:")
    return unpacked(DJANGO, lambda into: run(*pip, "-d", into, DJANGO))


def antd() -> Path:
    """A library of components, in JavaScript and with its types in TypeScript."""
    npm = shutil.which("npm")
    if npm is None:
        raise UnavailableError("there is no npm on this machine")
    return unpacked(ANTD, lambda into: run(npm, "pack", ANTD, "--silent", "--pack-destination", into))


def unpacked(name: str, fetch: Callable[[Path], None]) -> Path:
    """The folder of an archive that is fetched at first use."""
    place = FOLDER / name.replace("/", "_")
    done = place / "unpacked"
    if not done.exists():
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        fetch(place)
        (archive,) = place.glob("*.t*gz")
        with tarfile.open(archive) as files:
            files.extractall(place / "partial", filter="data")
        (place / "partial").rename(done)
    (root,) = done.iterdir()
    return root

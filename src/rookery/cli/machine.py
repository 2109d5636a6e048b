"""What the doctor looks at: the machine as it is, in one object, so that a test can hand over a broken one."""

import os
import shutil
import sqlite3
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Literal, NamedTuple

from rookery.core.errors import RookeryError
from rookery.settings import Settings, default_home, load_settings

State = Literal["ok", "note", "problem"]


class Finding(NamedTuple):
    """What one check found; `mend` says what to do about it, empty where nothing is to be done."""

    check: str
    state: State
    sentence: str
    mend: str = ""


def sentence_of(message: str) -> str:
    """An error's message as a sentence among others."""
    return f"{message[:1].upper()}{message[1:]}."


def is_installed(module: str) -> bool:
    """Whether a module could be imported; imports at most the packages above it."""
    try:
        return find_spec(module) is not None
    except ImportError:
        return False


def free_bytes(path: str) -> int:
    """The space left where `path` is, or will be."""
    while not os.path.exists(path):
        path = os.path.dirname(path)
    return shutil.disk_usage(path).free


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A home with its settings, and the machine around it. `settings_error` is why they could not be read."""

    settings: Settings
    settings_error: RookeryError | None = None
    environ: Mapping[str, str]
    python: tuple[int, ...] = tuple(sys.version_info[:3])
    sqlite: tuple[int, ...] = sqlite3.sqlite_version_info
    package: str = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    installed: Callable[[str], bool] = is_installed
    free: Callable[[str], int] = free_bytes


def this_machine(home: str | None = None, environ: Mapping[str, str] = os.environ) -> Machine:
    """This machine, with the defaults where its settings cannot be read."""
    try:
        return Machine(settings=load_settings(home, environ), environ=environ)
    except RookeryError as error:
        chosen = os.path.abspath(os.path.expanduser(home)) if home else default_home(environ)
        return Machine(settings=Settings(home=chosen), settings_error=error, environ=environ)

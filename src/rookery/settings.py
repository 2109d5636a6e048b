"""Settings: `rookery.toml` in the home folder, overlaid by `ROOKERY_*`. A wrong one is named before anything starts."""

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, cast

from rookery.core.errors import ConfigurationError

LEVELS = ("debug", "info", "warning", "error")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Where things are and how they behave. `audit_reads` is "full" where reads must survive a power cut."""

    home: str
    host: str = "127.0.0.1"
    port: int = 4242
    database: str = ""
    log_level: str = "info"
    audit_reads: str = "normal"
    rate_calls_per_minute: int = 0
    hide_unavailable: bool = False
    max_line_bytes: int = 32 * 1024 * 1024
    plugins: bool = True

    @property
    def database_url(self) -> str:
        return self.database or f"sqlite:///{os.path.join(self.home, 'rookery.db')}"

    @property
    def logs(self) -> str:
        return os.path.join(self.home, "logs")

    @property
    def backups(self) -> str:
        return os.path.join(self.home, "backups")


CHOICES = {"audit_reads": ("normal", "full"), "log_level": LEVELS}
RANGES = {"port": (0, 65535), "rate_calls_per_minute": (0, 1_000_000), "max_line_bytes": (1024, 1 << 30)}


def default_home(environ: Mapping[str, str] = os.environ) -> str:
    """`ROOKERY_HOME`, or `.rookery` in the user's home."""
    return os.path.abspath(os.path.expanduser(environ.get("ROOKERY_HOME") or "~/.rookery"))


def load_settings(home: str | None = None, environ: Mapping[str, str] = os.environ, **override: Any) -> Settings:
    """Settings of `home`: defaults, then the file, then the environment, then what the caller says."""
    home = os.path.abspath(os.path.expanduser(home)) if home else default_home(environ)
    values: dict[str, Any] = {}
    known = {field.name: field.type for field in fields(Settings) if field.name != "home"}
    path = os.path.join(home, "rookery.toml")
    for key, value in _read_file(path).items():
        if key not in known:
            raise ConfigurationError(f"{path}: there is no setting {key}", hint=f"known: {', '.join(sorted(known))}")
        values[key] = _convert(f"{path}: {key}", key, value)
    if environ.get("PORT"):
        values["port"] = _convert("PORT", "port", environ["PORT"])
    for key in known:
        name = f"ROOKERY_{key.upper()}"
        if environ.get(name):
            values[key] = _convert(name, key, environ[name])
    values |= {key: _convert(key, key, value) for key, value in override.items() if value is not None}
    return Settings(home=home, **values)


def _read_file(path: str) -> dict[str, Any]:
    """The file's settings; tables become prefixes, so `[audit] reads` is `audit_reads`."""
    try:
        with open(path, "rb") as file:
            tree = tomllib.load(file)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigurationError(f"{path} cannot be read: {error}", hint="mend the file or move it away") from error
    flat: dict[str, Any] = {}
    for key, value in tree.items():
        if isinstance(value, dict):
            flat |= {f"{key}_{inner}": item for inner, item in cast("dict[str, Any]", value).items()}
        else:
            flat[key] = value
    return flat


def _convert(where: str, key: str, value: Any) -> Any:
    """The value as the setting's kind, or an error that names its place."""
    kind = next(field.type for field in fields(Settings) if field.name == key)
    try:
        converted = _read(kind, value)
        wanted = _wanted(key, converted)
    except ValueError:
        wanted = getattr(kind, "__name__", str(kind))
    else:
        if wanted is None:
            return converted
    raise ConfigurationError(f"{where} cannot be {value!r}", hint=f"it must be {wanted}")


def _read(kind: Any, value: Any) -> Any:
    """Text is read, since an environment has nothing else; what is of another kind is not changed into this one."""
    if type(value) is kind:
        return value
    if not isinstance(value, str):
        raise ValueError(value)
    return _to_bool(value) if kind is bool else int(value)


def _wanted(key: str, value: Any) -> str | None:
    """What is allowed instead of `value`, None if it is allowed."""
    if key in CHOICES and value not in CHOICES[key]:
        return f"one of {', '.join(CHOICES[key])}"
    if key in RANGES and not RANGES[key][0] <= value <= RANGES[key][1]:
        return f"between {RANGES[key][0]} and {RANGES[key][1]}"
    if key == "host" and not value:
        # A socket would take it for every network that this machine is in.
        return "an address, such as 127.0.0.1"
    return None


def _to_bool(text: str) -> bool:
    if text.lower() in ("1", "true", "yes", "on"):
        return True
    if text.lower() in ("0", "false", "no", "off"):
        return False
    raise ValueError(text)

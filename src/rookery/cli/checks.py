"""The doctor's checks of the program and its surroundings. Each looks at one thing and changes nothing."""

import importlib.util
import os
import platform
import shutil
import stat

from rookery.cli.machine import Finding, Machine, sentence_of
from rookery.core.errors import ConfigurationError
from rookery.sealing.keyring import load_keyring
from rookery.settings.addresses import is_loopback

NEEDED = (
    "click",
    "cronsim",
    "cryptography",
    "httpx2",
    "jinja2",
    "justhtml",
    "jwt",
    "markdown_it",
    "markupsafe",
    "mcp",
    "mnemonic",
    "pathspec",
    "psycopg",
    "pydantic",
    "pygments",
    "pypdf",
    "python_multipart",
    "rfc8785",
    "rich",
    "sqlalchemy",
    "starlette",
    "tzdata",
    "unidiff",
    "uvicorn",
    "yaml",
)
EXTRAS = {
    "claude": "claude_agent_sdk",
    "a2a": "a2a",
    "notify": "apprise",
    "embed": "onnxruntime",
    "otel": "opentelemetry.sdk",
    "algorand": "algosdk",
    "code": "tree_sitter",
    "code-more": "tree_sitter_kotlin",
}
COLLECTOR = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
OLDEST_PYTHON = (3, 11)
# The first SQLite with UPDATE … RETURNING.
OLDEST_SQLITE = (3, 35, 0)
WAL_RESET_BUG = ((3, 7, 0), (3, 51, 2))
MIB = 1024 * 1024
LITTLE_SPACE, NO_SPACE = 1024 * MIB, 100 * MIB
MNEMONIC_WORDS = 12
AUTH_MODES = {
    "local": "Local: over HTTP Rookery's own tokens are needed",
    "jwt": "JWT: over HTTP tokens signed with the shared secret are needed",
    "oauth": "OAuth: over HTTP tokens of the issuer are needed",
}


def check_python(machine: Machine) -> Finding:
    version = ".".join(str(part) for part in machine.python)
    if machine.python < OLDEST_PYTHON:
        return Finding("python", "problem", f"Python {version} is too old.", "install Python 3.11 or newer")
    return Finding("python", "ok", f"{platform.python_implementation()} {version}.")


def check_packages(machine: Machine) -> Finding:
    missing = [name for name in NEEDED if not machine.installed(name)]
    if missing:
        return Finding("packages", "problem", f"Not installed: {', '.join(missing)}.", "install Rookery again")
    if not machine.installed("uvloop"):
        return Finding(
            "packages", "note", "uvloop is not installed; the server is slower without it.", "pip install uvloop"
        )
    return Finding("packages", "ok", "Everything that Rookery needs is installed.")


def check_extras(machine: Machine) -> Finding:
    here = [extra for extra, module in EXTRAS.items() if machine.installed(module)]
    if "otel" not in here and any(machine.environ.get(name) for name in COLLECTOR):
        sentence = "A collector for telemetry is configured, but the extra otel is not installed."
        return Finding(
            "extras", "problem", sentence, "pip install 'rookery[otel]', or unset OTEL_EXPORTER_OTLP_ENDPOINT"
        )
    if "claude" not in here and machine.settings.runtime == "claude":
        sentence = "Agents are to be run by the Claude Agent SDK, but the extra claude is not installed."
        return Finding("extras", "problem", sentence, "pip install 'rookery[claude]', or set another runtime")
    absent = [extra for extra in EXTRAS if extra not in here]
    told = f"Installed: {', '.join(here) or 'none'}; optional and absent: {', '.join(absent) or 'none'}."
    return Finding("extras", "ok", told)


def check_settings(machine: Machine) -> Finding:
    if machine.settings_error is None:
        return Finding("settings", "ok", f"The settings of {machine.settings.home} can be read.")
    error = machine.settings_error
    return Finding("settings", "problem", sentence_of(error.message), error.hint or "mend rookery.toml")


def check_home(machine: Machine) -> Finding:
    home = machine.settings.home
    if not os.path.exists(home):
        return Finding("home", "note", f"{home} is not there yet.", "rookery up creates it")
    if not os.path.isdir(home):
        return Finding("home", "problem", f"{home} is not a folder.", "set ROOKERY_HOME to another place")
    found = os.stat(home)
    if found.st_uid != os.geteuid():
        return Finding("home", "problem", f"{home} belongs to another user.", "run rookery as its owner")
    if found.st_mode & 0o077:
        mode = stat.S_IMODE(found.st_mode)
        return Finding("home", "problem", f"Other users can reach {home} (mode {mode:o}).", f"chmod 700 {home}")
    if found.st_mode & 0o300 != 0o300:
        return Finding("home", "problem", f"{home} cannot be written.", f"chmod 700 {home}")
    return Finding("home", "ok", f"{home} is yours alone.")


def check_sqlite(machine: Machine) -> Finding:
    version = ".".join(str(part) for part in machine.sqlite)
    if not machine.settings.database_url.startswith("sqlite"):
        return Finding("sqlite", "ok", f"SQLite {version}, not in use: the database is PostgreSQL.")
    if machine.sqlite < OLDEST_SQLITE:
        return Finding("sqlite", "problem", f"SQLite {version} is too old.", "use a Python with SQLite 3.35 or newer")
    first, last = WAL_RESET_BUG
    if first <= machine.sqlite <= last:
        sentence = (
            f"SQLite {version} has the WAL-reset bug (3.7.0 to 3.51.2, fixed in 3.51.3). Its race needs two writers "
            "at once, which the lock beside the database keeps from happening."
        )
        return Finding("sqlite", "note", sentence, "open the database with other programs read-only")
    return Finding("sqlite", "ok", f"SQLite {version}.")


def check_auth(machine: Machine) -> Finding:
    settings = machine.settings
    host, mode = settings.host, settings.auth_mode
    if mode == "none" and "*" in settings.http_origins:
        sentence = "Nobody needs a token and every web page may call, so any page that you open can use your tools."
        return Finding("auth", "problem", sentence, "set auth_mode to local, or name the origins instead of *")
    if not is_loopback(host) and not settings.public_url.startswith("https://"):
        sentence = f"The server listens on {host}, where others can reach it, and tokens travel there unencrypted."
        mend = "set host to 127.0.0.1 and put a proxy with TLS before it; public_url is then its https address"
        return Finding("auth", "problem", sentence, mend)
    if mode == "none":
        sentence = f"Nobody needs a token: whoever is on this machine can use the default agent's tools on {host}."
        return Finding("auth", "note", sentence, "set auth_mode to local")
    if mode in ("jwt", "oauth") and not settings.auth_scope_checks:
        sentence = "Tokens that speak for an agent need no scopes: whoever has one may do all that the agent may."
        return Finding("auth", "note", sentence, "set auth_scope_checks to true; auth_scope_map translates scopes")
    return Finding("auth", "ok", f"{AUTH_MODES[mode]}; the server listens on {host}.")


def check_mnemonic(machine: Machine) -> Finding:
    if machine.settings_error:
        return Finding("mnemonic", "note", "Not looked at, since the settings do not load.", "mend the settings first")
    settings = machine.settings
    try:
        keyring = load_keyring(settings)
    except ConfigurationError as error:
        return Finding("mnemonic", "problem", sentence_of(error.message), error.hint or "mend it")
    mend = (
        f"set ROOKERY_MNEMONIC to {MNEMONIC_WORDS} or more random BIP-39 words, or key_file to a file of random bytes"
    )
    if keyring is None and settings.network != "local":
        sentence = f"Neither mnemonic nor key_file is set, so on the network {settings.network} no memory can be saved."
        return Finding("mnemonic", "problem", sentence, mend)
    if keyring is None:
        return Finding("mnemonic", "note", "Neither mnemonic nor key_file is set: memories are unencrypted.", mend)
    words = settings.mnemonic.lower().split()
    if len(set(words)) * 2 < len(words):
        sentence = "The mnemonic says the same word again and again; those of examples do, and can be guessed."
        return Finding("mnemonic", "problem", sentence, "rookery memory rotate-key moves to random words")
    source = "mnemonic" if words else "key file"
    return Finding("mnemonic", "ok", f"Memories are sealed with the key {keyring.fingerprint}, made from the {source}.")


def check_git(machine: Machine) -> Finding:
    found = shutil.which("git", path=machine.environ.get("PATH", ""))
    if found is None:
        return Finding(
            "git", "note", "git is not on the PATH; working copies and pull requests need it.", "install git"
        )
    return Finding("git", "ok", f"git is {found}.")


def check_github(machine: Machine) -> Finding:
    settings = machine.settings
    if not settings.github_token and not settings.github_app_id:
        sentence = "Neither GITHUB_TOKEN nor GH_TOKEN is set; the GitHub tools will say so when called."
        return Finding("github", "note", sentence, "set GITHUB_TOKEN before rookery up")
    told = f"The GitHub App {settings.github_app_id}" if settings.github_app_id else "A GitHub token"
    return Finding("github", "ok", f"{told} is set.")


def check_disk(machine: Machine) -> Finding:
    free = machine.free(machine.settings.home)
    told = f"{free // MIB} MiB are free where the home is."
    if free < NO_SPACE:
        return Finding("disk", "problem", f"Only {told}", "make room: a call that cannot be recorded is refused")
    if free < LITTLE_SPACE:
        return Finding("disk", "note", f"Only {told}", "make room, or move the home with ROOKERY_HOME")
    return Finding("disk", "ok", told)


def check_bytecode(machine: Machine) -> Finding:
    sources = [
        os.path.join(folder, name)
        for folder, _, names in os.walk(machine.package)
        for name in names
        if name.endswith(".py")
    ]
    missing = sum(not os.path.exists(importlib.util.cache_from_source(source)) for source in sources)
    if missing:
        sentence = f"{missing} of {len(sources)} modules are not compiled, so every start compiles them anew."
        if machine.environ.get("PYTHONDONTWRITEBYTECODE"):
            sentence = f"{sentence} PYTHONDONTWRITEBYTECODE keeps Python from doing it once."
        return Finding("bytecode", "note", sentence, f"python -m compileall -q {machine.package}")
    if machine.environ.get("PYTHONDONTWRITEBYTECODE"):
        sentence = "PYTHONDONTWRITEBYTECODE is set, so starts are slow after every change."
        return Finding("bytecode", "note", sentence, "unset PYTHONDONTWRITEBYTECODE")
    return Finding("bytecode", "ok", "Every module is compiled.")

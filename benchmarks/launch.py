"""How the programs under test are started and stopped."""

import os
import shutil
import socket
import stat
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from benchmarks.machine import memory_kb
from benchmarks.raw_client import MeasureError, StdioServer, deadline, last_words

ROOT = Path(__file__).resolve().parent.parent
HERE = ROOT / "benchmarks"
ENTRY = "from rookery.entry import main; main()"
FALLBACK_TOOLS = 65  # for the peers, where ours do not start
START_LIMIT_S = 60
STOP_LIMIT_S = 10
THIN_KB = 40 * 1024
# Bytecode must be written, or every start would compile; unbuffered output would change what the peers cost.
UNWANTED = ("PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED", "PYTHONPATH", "PORT")


def clean_env(extra: Mapping[str, str]) -> dict[str, str]:
    """This environment without what would change a measurement, and `extra`."""
    kept = {k: v for k, v in os.environ.items() if k not in UNWANTED and not k.startswith("ROOKERY_")}
    return kept | dict(extra)


@dataclass(frozen=True)
class Program:
    """A stdio MCP server as a client starts it. `shared_pid` is the process behind it that does the work."""

    name: str
    argv: tuple[str, ...]
    extra_env: Mapping[str, str] = field(default_factory=dict[str, str], hash=False)
    shared_pid: int | None = None

    def start(self) -> StdioServer:
        return StdioServer(self.argv, clean_env(self.extra_env))

    def warm_up(self) -> int:
        """Run it once, so that bytecode and database exist. Returns how many tools it lists."""
        server = self.start()
        try:
            with server, deadline(START_LIMIT_S, f"the first start of {self.name}"):
                try:
                    server.initialize()
                    tools = len(server.list_tools())
                    self._check_thin(server)
                    return tools
                except (MeasureError, OSError) as error:
                    raise MeasureError(f"{error}: {server.complaint()}") from error
        except (MeasureError, OSError) as error:
            raise MeasureError(f"{self.name} does not answer: {error}") from error

    def _check_thin(self, server: StdioServer) -> None:
        # A relay whose server refuses it serves by itself, and then its figures are those of the direct mode.
        if self.shared_pid is not None and memory_kb(server.process.pid)["rss"] > THIN_KB:
            raise MeasureError(f"{self.name} did not reach its server and serves by itself")


@dataclass(frozen=True)
class Server:
    """A running `rookery up`."""

    pid: int
    port: int
    home: Path
    socket_path: Path


@dataclass(frozen=True)
class Rookery:
    """Our own programs, from a virtual environment or, where nothing is installed, from the source tree."""

    venv: Path

    @property
    def python(self) -> str:
        return str(self.venv / "bin" / "python")

    def command(self, *arguments: str) -> tuple[str, ...]:
        script = self.venv / "bin" / "rookery"
        if script.exists():
            return (str(script), *arguments)
        return (self.python, "-c", ENTRY, *arguments)

    def env(self, home: Path, extra: Mapping[str, str], plugins: tuple[Path, ...] = ()) -> dict[str, str]:
        paths = [str(path) for path in plugins]
        if not (self.venv / "bin" / "rookery").exists():
            paths.insert(0, str(ROOT / "src"))
        found = {"PYTHONPATH": os.pathsep.join(paths)} if paths else {}
        return {"ROOKERY_HOME": str(home), **found, **extra}

    def say(self, home: Path, *arguments: str) -> str:
        """What a command of ours prints, for the same home as a server of `up`."""
        command, env = self.command(*arguments), clean_env(self.env(home, {}))
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=START_LIMIT_S)
        if done.returncode:
            raise MeasureError(f"`rookery {' '.join(arguments)}` failed: {last_words(done.stderr)}")
        return done.stdout.strip()

    def version(self) -> str:
        """The version that our relay would tell the server."""
        command = [self.python, "-c", "import rookery; print(rookery.__version__)"]
        env = clean_env(self.env(ROOT, {}))
        return subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout.strip()

    def direct(self, home: Path, extra: Mapping[str, str], plugins: tuple[Path, ...] = ()) -> Program:
        return Program("direct", self.command("stdio", "--direct"), self.env(home, extra, plugins))

    def relay(self, server: Server) -> Program:
        return Program("relay", self.command("stdio"), self.env(server.home, {}), server.pid)

    @contextmanager
    def up(self, extra: Mapping[str, str], plugins: tuple[Path, ...] = ()) -> Iterator[Server]:
        """A server on a home and a port of its own, answering on its socket. Both are gone afterwards."""
        with temporary_home() as home:
            port = free_port()
            env = clean_env(self.env(home, {"PORT": str(port), **extra}, plugins))
            log_path = home.with_suffix(".log")
            with log_path.open("wb") as log:
                process = subprocess.Popen(
                    self.command("up"), env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log
                )
            try:
                yield Server(process.pid, port, home, wait_for_socket(process, home, log_path))
            finally:
                stop(process)
                log_path.unlink()


def our_programs(
    rookery: Rookery,
    problems: list[str],
    stack: ExitStack,
    variants: Mapping[str, Mapping[str, str]],
    plugins: tuple[Path, ...] = (),
) -> list[Program]:
    """Relay and direct for each variant (what follows the name, and its environment); a relay may be missing."""
    found: list[Program] = []
    for suffix, extra in variants.items():
        try:
            relay = rookery.relay(stack.enter_context(rookery.up(extra, plugins)))
            found.append(replace(relay, name=f"relay{suffix}"))
        except (MeasureError, OSError) as error:
            problems.append(f"relay{suffix}: {error}")
        home = stack.enter_context(temporary_home())
        found.append(replace(rookery.direct(home, extra, plugins), name=f"direct{suffix}"))
    return found


def warmed(programs: Iterable[Program], problems: list[str]) -> dict[Program, int]:
    """Those programs that answer, with the number of tools that they list."""
    counts: dict[Program, int] = {}
    for program in programs:
        try:
            counts[program] = program.warm_up()
        except MeasureError as error:
            problems.append(str(error))
    return counts


def peer(name: str, *argv: str | Path) -> Program:
    return Program(name, tuple(str(part) for part in argv))


@contextmanager
def temporary_home() -> Iterator[Path]:
    # Not TemporaryDirectory: a server that is still closing files must not turn the clean-up into an error.
    home = Path(tempfile.mkdtemp(prefix="rookery-bench-"))
    try:
        yield home
    finally:
        shutil.rmtree(home, ignore_errors=True)


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def wait_for_socket(process: subprocess.Popen[bytes], home: Path, log_path: Path) -> Path:
    """The unix socket in `home`, once something answers there."""
    end = time.monotonic() + START_LIMIT_S
    while time.monotonic() < end and process.poll() is None:
        for path in home.rglob("*"):
            with suppress(OSError):
                if stat.S_ISSOCK(path.stat().st_mode) and connects(path):
                    return path
        time.sleep(0.05)
    said = last_words(log_path.read_text(errors="replace"))
    raise MeasureError(f"`rookery up` did not open its socket: {said}")


def connects(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        probe.connect(str(path))
    return True


def stop(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(STOP_LIMIT_S)

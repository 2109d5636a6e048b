"""Runs the probes of a project side by side. One that fails says why and keeps no other from its count."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Event

from rookery.domains.health.metrics import METRICS
from rookery.domains.health.project_settings import HealthSettings
from rookery.domains.health.reading import failed_tests, outdated, type_errors
from rookery.domains.health.source_scan import MAX_FILES, Scanned, scan
from rookery.lifecycle.programs import run_command

OUTPUT_CHARACTERS = 1_000_000
REASON_CHARACTERS = 500
NO_COMMAND = "no command is set"
# What the shell answers if there is no such program, if it cannot be run, or if a signal ended it.
NOT_RUN_FROM = 126
PROBES = ("types", "tests", "source", "outdated")
Read = Callable[[str, int], int | None]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one probe counted, by the columns of a snapshot, or why it counted nothing."""

    probe: str
    counts: Mapping[str, int] = field(default_factory=dict[str, int])
    missing: str | None = None
    samples: Sequence[str] = ()

    @property
    def line(self) -> str:
        """The outcome for whoever watches."""
        if self.missing is not None:
            return f"{self.probe}: {self.missing.splitlines()[-1]}"
        counted = (f"{metric} {self.counts[column]}" for metric, column in METRICS.items() if column in self.counts)
        return f"{self.probe}: {', '.join(counted)}"


def probes(folder: str, settings: HealthSettings) -> Sequence[Awaitable[Outcome]]:
    """Everything that is looked at in the folder, not begun yet, in the order of PROBES."""
    return (
        _command("types", "tsc_error_count", settings.types, folder, settings.limit_s, type_errors),
        _command("tests", "test_failure_count", settings.tests, folder, settings.limit_s, failed_tests),
        _source(folder, settings),
        _command("outdated", "outdated_dep_count", settings.outdated, folder, settings.limit_s, outdated),
    )


async def collect(folder: str, settings: HealthSettings, told: Callable[[Outcome], None]) -> list[Outcome]:
    """The outcomes of all probes; each is `told` as soon as it is there. Whoever is cancelled leaves no process."""

    async def one(probe: Awaitable[Outcome]) -> Outcome:
        outcome = await probe
        told(outcome)
        return outcome

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one(probe)) for probe in probes(folder, settings)]
    return [task.result() for task in tasks]


async def _command(probe: str, column: str, command: str, folder: str, limit_s: int, read: Read) -> Outcome:
    if not command:
        return Outcome(probe, missing=f"{NO_COMMAND}; the owner sets one: rookery health settings --{probe} COMMAND")
    ran = await run_command(command, folder, limit_s, OUTPUT_CHARACTERS)
    said = ran.output[-REASON_CHARACTERS:]
    if ran.exit_code is None or not 0 <= ran.exit_code < NOT_RUN_FROM:
        return Outcome(probe, missing=said)
    count = await asyncio.to_thread(read, ran.output, ran.exit_code)
    return Outcome(probe, missing=said) if count is None else Outcome(probe, {column: count})


async def _source(folder: str, settings: HealthSettings) -> Outcome:
    stop = Event()
    try:
        async with asyncio.timeout(settings.limit_s):
            found = await asyncio.to_thread(scan, folder, settings.exclude, settings.large_lines, stop)
    except TimeoutError:
        return Outcome("source", missing=f"stopped after {settings.limit_s:g} s")
    except OSError as error:
        return Outcome("source", missing=f"the folder cannot be read: {error.strerror}")
    finally:
        stop.set()
    return _counted(found)


def _counted(found: Scanned) -> Outcome:
    if not found.whole:
        return Outcome("source", missing=f"there are more than {MAX_FILES} source files; exclude some")
    counts = {f"{kind.decode().lower()}_count": count for kind, count in found.notes.items()}
    return Outcome("source", {**counts, "large_file_count": found.large}, samples=found.samples)

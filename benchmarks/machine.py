"""What the machine was doing meanwhile: CPU time, memory of a process, load."""

import os
import platform
import statistics
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
BUSY_FIELDS = (
    0,
    1,
    2,
    5,
    6,
)  # user, nice, system, irq, softirq: what ran here, without idle, iowait and steal


def cpu_seconds(pid: int) -> float:
    """CPU time that a live process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_S


def busy_seconds() -> float:
    """CPU time that every process of the machine together has used."""
    fields = Path("/proc/stat").read_text().splitlines()[0].split()[1:]
    return sum(int(fields[index]) for index in BUSY_FIELDS) / TICKS_PER_S


def memory_kb(pid: int) -> dict[str, int]:
    """Resident and proportional size of a live process, in KB."""
    sizes: dict[str, int] = {}
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        name, _, rest = line.partition(":")
        if name in ("Rss", "Pss"):
            sizes[name.lower()] = int(rest.split()[0])
    return sizes


def sync_us(times: int = 100) -> float:
    """Median microseconds until one page is on the disk that temporary homes lie on: the floor of a durable write."""
    took: list[float] = []
    with tempfile.NamedTemporaryFile(prefix="rookery-bench-") as file:
        for _ in range(times):
            file.write(bytes(4096))
            file.flush()
            started = time.perf_counter()
            os.fdatasync(file.fileno())
            took.append((time.perf_counter() - started) * 1e6)
    return statistics.median(took)


def describe() -> dict[str, Any]:
    """What a reader of the figures has to know about the machine."""
    return {
        "cores": os.cpu_count(),
        "load_average": [round(load, 2) for load in os.getloadavg()],
        "python": platform.python_version(),
        "kernel": platform.release(),
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


@dataclass
class CpuWatch:
    """CPU used by the processes under test, and the share of the machine that strangers took."""

    pids: tuple[int, ...]
    _started: float = 0.0
    _busy: float = 0.0
    _ours: float = 0.0
    _client: float = 0.0

    @classmethod
    def of(cls, pids: Iterable[int]) -> Self:
        watch = cls(tuple(pids))
        watch._started = time.perf_counter()
        watch._busy, watch._ours, watch._client = watch._read()
        return watch

    def stop(self) -> tuple[float, float]:
        """Seconds of CPU of the watched processes, and the strangers' share of all cores between 0 and 1."""
        elapsed = time.perf_counter() - self._started
        busy, ours, client = self._read()
        used = ours - self._ours
        strangers = busy - self._busy - used - (client - self._client)
        return used, max(0.0, strangers / (elapsed * (os.cpu_count() or 1)))

    def _read(self) -> tuple[float, float, float]:
        return busy_seconds(), sum(cpu_seconds(pid) for pid in self.pids), time.process_time()

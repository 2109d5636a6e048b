"""The kinds of jobs of the orchestrator."""

from rookery.engine.cleaning import clean
from rookery.engine.gates import run_gates
from rookery.engine.running import run_dispatch

__all__ = ["clean", "run_dispatch", "run_gates"]

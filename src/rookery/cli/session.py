"""From the options of a command to a platform and the one who acts on it. Heavy imports wait until they are needed."""

import contextlib
import logging
import os
from collections.abc import Callable, Generator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import click

from rookery import relay

if TYPE_CHECKING:
    from rookery.app import Platform
    from rookery.core.actor import Actor
    from rookery.core.results import Result
    from rookery.core.tool import Tool
    from rookery.settings import Settings

F = TypeVar("F", bound=Callable[..., Any])
Bound = str | bool | None


def flag_options(*, leave_out: tuple[str, ...] = ()) -> Callable[[F], F]:
    """The flags of `rookery stdio` as options, so that a session can be asked about by the flags it starts with."""

    def decorate(function: F) -> F:
        for name, (takes_value, sentence) in reversed(relay.FLAGS.items()):
            if name not in leave_out:
                metavar = name[2:].rpartition("-")[2].upper() if takes_value else None
                option = click.option(name, help=sentence, metavar=metavar, is_flag=not takes_value, default=None)
                function = option(function)
        return function

    return decorate


def as_arguments(bound: Mapping[str, Bound]) -> list[str]:
    """The options as `rookery stdio` would be given them."""
    words: list[str] = []
    for key, value in bound.items():
        name = f"--{key.replace('_', '-')}"
        if value is True:
            words.append(name)
        elif isinstance(value, str):
            words.append(f"{name}={value}")
    return words


def flags_of(bound: Mapping[str, Bound]) -> relay.Flags:
    """The flags, checked as `rookery stdio` checks them: no value may be empty."""
    try:
        return relay.parse_flags(as_arguments(bound))
    except relay.UsageError as error:
        raise click.UsageError(str(error)) from None


def settings_of(flags: relay.Flags) -> "Settings":
    """The settings of the home and database that the flags name."""
    from rookery.server.launch import database_url, working_folder
    from rookery.settings import load_settings

    db = flags.get("db")
    database = database_url(db, working_folder()) if isinstance(db, str) else None
    return load_settings(relay.home_path(flags), database=database)


@contextlib.contextmanager
def opened(flags: relay.Flags) -> Generator["Platform"]:
    """The platform of these flags, brought up to date, closed afterwards.

    With `--as-owner` the home must belong to the user who asks: nobody else is its owner, and files that another
    user leaves there would lock the owner out.
    """
    from rookery.app import make_platform
    from rookery.server.launch import only_owner

    settings = settings_of(flags)
    _quiet_logs(settings.log_level)
    if flags.get("as_owner"):
        only_owner(settings.home)
    platform = make_platform(settings)
    try:
        yield platform
    finally:
        platform.close()


def _quiet_logs(level: str) -> None:
    """A command answers on stdout and in one sentence on stderr; logs come only if they are asked for."""
    if os.environ.get("ROOKERY_LOG_LEVEL"):
        from rookery.around.logs import configure_logs

        configure_logs(level)
    elif not logging.getLogger("rookery").handlers:
        logging.getLogger("rookery").addHandler(logging.NullHandler())


def actor_of(platform: "Platform", flags: relay.Flags) -> "Actor":
    """Who a session with these flags would be, as the database has it now."""
    from rookery.server.launch import binding_from, working_folder

    binding = binding_from(flags, platform.registry, working_folder())
    return platform.database.direct(lambda tx: platform.resolver.resolve(tx, binding)).actor


def answer(platform: "Platform", flags: relay.Flags, tool: "str | Tool", arguments: dict[str, Any]) -> "Result":
    """Call a tool in this process as the session of these flags. Raises what the caller would be told.

    By its name, or the tool itself if it is one that only commands and the console call.
    """
    import asyncio

    actor = actor_of(platform, {"source": "cli", **flags})
    if isinstance(tool, str):
        return asyncio.run(platform.calls.call(actor, tool, arguments))
    return asyncio.run(platform.calls.run(actor, tool, arguments))


def call_tool(flags: relay.Flags, tool: "str | Tool", arguments: dict[str, Any]) -> "Result":
    """The same, on a platform that is opened for this one call."""
    with opened(flags) as platform:
        return answer(platform, flags, tool, arguments)


def owner_flags(home: str | None, project: str | None = None) -> relay.Flags:
    """The flags of the home's owner, bound to a project by slug or id, or to the default one."""
    return flags_of({"home": home, "as_owner": True, "project_id": project})


def call_as_owner(
    home: str | None, tool: "str | Tool", arguments: dict[str, Any] | None = None, *, project: str | None = None
) -> dict[str, Any]:
    """The structured result of a tool, called as the owner of the home."""
    flags = owner_flags(home, project)
    return call_tool(flags, tool, arguments or {}).structured

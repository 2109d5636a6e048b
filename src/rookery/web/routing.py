"""The declaration of a page: `@page` and `@action` beside its handler are the only places where an address is named."""

import importlib
import pkgutil
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING

from starlette.responses import Response

import rookery.web.pages

if TYPE_CHECKING:
    from rookery.web.visit import Visit

Handler = Callable[["Visit"], Awaitable[Response]]
DECLARED = "__console_address__"
MAX_BODY = 2 << 20


@dataclass(frozen=True, slots=True)
class Nav:
    """A line of the menu. `group` stands above the first of its kind, `order` sorts, `icon` is one of icons.html.

    `count` names the figure of what waits for the person that stands beside it.
    """

    label: str
    group: str
    order: int
    icon: str
    count: str = ""


@dataclass(frozen=True, slots=True)
class Address:
    """One address of the console, what answers there, and its line in the menu if it has one.

    An action changes something, so it takes POST alone, with the form's token.
    """

    path: str
    method: str
    handler: Handler = field(repr=False)
    nav: Nav | None = None
    max_body: int = MAX_BODY


def page(path: str, *, nav: Nav | None = None) -> Callable[[Handler], Handler]:
    """The decorated handler answers GET at `path`."""
    return _declare(lambda handler: Address(path, "GET", handler, nav))


def action(path: str, *, max_body: int = MAX_BODY) -> Callable[[Handler], Handler]:
    """The decorated handler answers POST at `path`, from our own pages only."""
    return _declare(lambda handler: Address(path, "POST", handler, None, max_body))


def _declare(made: Callable[[Handler], Address]) -> Callable[[Handler], Handler]:
    def decorate(handler: Handler) -> Handler:
        setattr(handler, DECLARED, made(handler))
        return handler

    return decorate


@cache
def addresses() -> tuple[Address, ...]:
    """Every address that the modules below `pages` declare; those without a part that varies come first."""
    found = [
        declared
        for each in pkgutil.iter_modules(rookery.web.pages.__path__)
        for declared in _declared(importlib.import_module(f"rookery.web.pages.{each.name}"))
    ]
    return tuple(sorted(found, key=lambda address: ("{" in address.path, address.path)))


@cache
def menu() -> tuple[Address, ...]:
    """The pages with a line in the menu, in its order."""
    return tuple(sorted((each for each in addresses() if each.nav), key=lambda each: each.nav.order if each.nav else 0))


def _declared(module: ModuleType) -> list[Address]:
    own = (each for each in vars(module).values() if getattr(each, "__module__", None) == module.__name__)
    return [declared for each in own if (declared := getattr(each, DECLARED, None)) is not None]

"""Templates: everything is escaped unless we made it, and a block of a page can be had by itself."""

from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

from rookery import __version__
from rookery.web.browser_name import browser_name
from rookery.web.editing import editable
from rookery.web.showing import FILTERS, harmless
from rookery.web.static import static_url


def _finalize(value: Any) -> Any:
    """Whatever a template prints is harmless: texts of others may hold what turns a line around, or megabytes."""
    return harmless(value) if type(value) is str else value


@cache
def environment() -> Environment:
    """The templates of the console."""
    made = Environment(
        loader=PackageLoader("rookery.web"),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finalize,
    )
    untyped: Any = made
    untyped.filters.update(FILTERS, editable=editable, browser_name=browser_name)
    untyped.globals.update(static=static_url, version=__version__)
    return made


def rendered(template: str, values: dict[str, Any], block: str = "") -> Markup:
    """The page, or one block of it with the same values."""
    found = environment().get_template(template)
    if not block or block not in found.blocks:
        return Markup(found.render(values))
    context = found.new_context(values)
    return Markup("".join(found.blocks[block](context)))

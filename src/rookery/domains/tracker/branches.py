"""Names of branches, as inputs take them."""

import re
from typing import Annotated

from pydantic import AfterValidator

MAX_BRANCH = 250
_NO_BRANCH = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|^[-/.]|^@$|/\.|[/.]$|\.lock(?:/|$)|^$")


def _branch(name: str) -> str:
    if len(name) > MAX_BRANCH or _NO_BRANCH.search(name):
        raise ValueError(f"not the name of a branch, as git branch prints it (at most {MAX_BRANCH} characters)")
    return name


# A validator rather than a pattern: a schema that every agent reads should not spell out the rules of git.
Branch = Annotated[str, AfterValidator(_branch)]
"""What git takes for a branch, and never an expression or an option."""

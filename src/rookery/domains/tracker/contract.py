"""Phase contracts: what a phase must deliver, and the prompt for the agent that works on it.

A contract is a Markdown file with YAML front matter. Those of the package are in `contracts/`; a project may have its
own in a folder of its repository.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, Literal, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rookery.core.errors import ConfigurationError
from rookery.core.tool import PROFILES
from rookery.domains.tracker.sections import slug
from rookery.files.git import borrowed, open_repository, resolve
from rookery.files.tree_files import path_parts, read_inside
from rookery.lifecycle.states import PHASE_PROFILES, PHASES

MAX_CONTRACT = 256 * 1024
MAX_FRONT_MATTER = 16 * 1024
MAX_DEPTH = 20
_FRONT = re.compile(r"\A---[ \t]*\n(.*?)^---[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_TREE_ENTRY = re.compile(rb"100[0-7]{3} blob ([0-9a-f]+) +([0-9]+)\t[^\0]*\0")

Phase = Literal["research", "architecture", "grooming", "ready"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Contract:
    """What one phase must deliver. A path may be written if `allowed_writes` matches and `forbidden_writes` does not;
    `{issue}` in these patterns stands for the issue's identifier. `artifact` and `next` are None for ready alone.
    """

    phase: str
    version: int
    profiles: tuple[str, ...]
    artifact: str | None
    min_chars: int
    required_sections: tuple[str, ...]
    requires_judge: bool
    next: str | None
    allowed_writes: tuple[str, ...]
    forbidden_writes: tuple[str, ...]
    body: str


class _FrontMatter(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    phase: Phase
    version: int = Field(ge=1, le=1_000_000)
    profiles: list[str] = Field(min_length=1, max_length=len(PROFILES))
    artifact: str | None = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,95}\.md$")
    min_chars: int = Field(ge=0, le=1_000_000)
    required_sections: list[str] = Field(max_length=50)
    requires_judge: bool
    next: Phase | None
    allowed_writes: list[str] = Field(max_length=100)
    forbidden_writes: list[str] = Field(max_length=100)


_FIELDS = ", ".join(_FrontMatter.model_fields)
_LISTS = ("profiles", "required_sections", "allowed_writes", "forbidden_writes")


def parse_contract(text: str | bytes, where: str) -> Contract:
    """The contract that `text` is. `where` names it in the error that says what is wrong."""
    text = _decoded(text, where)
    found = _FRONT.match(text)
    if found is None:
        raise ConfigurationError(
            f"the contract {where} has no front matter", hint="start the file with ---, YAML fields, and --- again"
        )
    front = _validated(_loaded(found[1], where), where)
    body = text[found.end() :].strip()
    faults = [*_faults(front), *([] if body else ["body: there is no prompt below the front matter"])]
    if faults:
        raise _wrong(where, faults)
    fields: dict[str, Any] = front.model_dump()
    fields |= {name: tuple(fields[name]) for name in _LISTS}
    return Contract(**fields, body=body)


@cache
def packaged_contract(phase: str) -> Contract:
    """The contract that the package brings for this phase."""
    if phase not in PHASES:
        raise ConfigurationError(f"there is no phase {phase}", hint=f"the phases are {', '.join(PHASES)}")
    file = resources.files("rookery.domains.tracker").joinpath("contracts", f"{phase}.md")
    return parse_contract(file.read_bytes(), f"{phase}.md of the package")


def contract_in(folder: str | Path, phase: str) -> Contract | None:
    """The contract for this phase in a folder, or None if it has none. A link is not followed."""
    root = str(Path(folder).resolve())
    where = f"{Path(folder).name}/{phase}.md"
    content = read_inside(root, f"{root}/{phase}.md", MAX_CONTRACT, where, ConfigurationError)
    return None if content is None else _of_phase(parse_contract(content, where), phase, where)


def contract_on_branch(repo: str | Path, branch: str, folder: str, phase: str) -> Contract | None:
    """The contract for this phase as it is committed on a branch, or None if the branch has none in that folder.

    What lies in the working tree does not count. A repository or branch that is not there is ValidationFailed.
    """
    path = "/".join((*path_parts(folder, "the folder of contracts"), f"{phase}.md"))
    where = f"{path} on {branch}"
    repository = open_repository(str(repo))
    commit = resolve(repository, branch)
    with borrowed(repository, commit) as git:
        listed = git.objects("--literal-pathspecs", "ls-tree", "-z", "--long", "--full-tree", commit, "--", path)
        if not listed:
            return None
        entry = _TREE_ENTRY.fullmatch(listed)
        if entry is None:
            raise ConfigurationError(f"the contract {where} is not a regular file", hint="commit a plain file")
        if int(entry[2]) > MAX_CONTRACT:
            raise _too_long(where)
        content = git.objects("cat-file", "blob", entry[1].decode())
    return _of_phase(parse_contract(content, where), phase, where)


def _decoded(text: str | bytes, where: str) -> str:
    if len(text if isinstance(text, bytes) else text.encode(errors="replace")) > MAX_CONTRACT:
        raise _too_long(where)
    try:
        text = text.decode() if isinstance(text, bytes) else text
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"the contract {where} is not UTF-8: {error}", hint="save it as UTF-8") from error
    return text.removeprefix("\ufeff").replace("\r\n", "\n")


def _loaded(front: str, where: str) -> dict[str, Any]:
    import yaml as untyped

    yaml: Any = untyped
    if len(front) > MAX_FRONT_MATTER:
        raise _wrong(where, [f"the front matter has more than {MAX_FRONT_MATTER} characters"])
    # Stands for the line of dashes above it, so that an error names the lines of the file.
    front = f"\n{front}"
    try:
        _refuse_costly(yaml.scan(front), yaml, where)
        node = yaml.compose(front, yaml.SafeLoader)
        if not isinstance(node, yaml.MappingNode):
            raise _wrong(where, ["the front matter is not a list of fields"])
        names = [str(key.value) for key, _ in node.value]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise _wrong(where, [f"{', '.join(twice)}: given twice"])
        return cast("dict[str, Any]", yaml.safe_load(front))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        # Dates and numbers that do not exist are a ValueError; lists in lists by indentation can end the stack.
        raise _wrong(where, [" ".join(str(error).split())[:300] or type(error).__name__]) from error


def _refuse_costly(tokens: Iterable[Any], yaml: Any, where: str) -> None:
    """A few aliases can stand for billions of nodes, and the scanner takes seconds for brackets by the thousand."""
    depth = 0
    for token in tokens:
        if isinstance(token, (yaml.AliasToken, yaml.AnchorToken)):
            raise _wrong(where, ["anchors and aliases (& and *) are not allowed; quote a text that starts with them"])
        depth += isinstance(token, (yaml.FlowSequenceStartToken, yaml.FlowMappingStartToken))
        depth -= isinstance(token, (yaml.FlowSequenceEndToken, yaml.FlowMappingEndToken))
        if depth > MAX_DEPTH:
            raise _wrong(where, [f"brackets are nested more than {MAX_DEPTH} deep"])


def _validated(fields: dict[str, Any], where: str) -> _FrontMatter:
    try:
        return _FrontMatter.model_validate(fields)
    except ValidationError as error:
        faults = (
            f"{'.'.join(str(step) for step in fault['loc'])}: {fault['msg'].lower()}"
            for fault in error.errors(include_url=False, include_input=False, include_context=False)
        )
        raise _wrong(where, sorted(faults)) from error


def _faults(front: _FrontMatter) -> list[str]:
    """What is wrong between fields that are each right."""
    faults: list[str] = []
    able = PHASE_PROFILES[front.phase]
    if others := sorted(set(front.profiles) - able):
        faults.append(f"profiles: {', '.join(others)} cannot complete {front.phase}, only {', '.join(sorted(able))}")
    ready = front.phase == "ready"
    if ready != (front.artifact is None):
        faults.append(f"artifact: {'ready has none, so null' if ready else 'a file name that ends in .md'}")
    later = PHASES[PHASES.index(front.phase) + 1 :]
    if front.next not in (later or (None,)):
        faults.append(f"next: {' or '.join(later) or 'nothing follows ready, so null'}")
    slugs = [slug(section) for section in front.required_sections]
    if not all(slugs) or len(set(slugs)) < len(slugs) or (ready and slugs):
        faults.append("required_sections: different names with letters, and none for ready")
    return faults


def _of_phase(contract: Contract, phase: str, where: str) -> Contract:
    if contract.phase != phase:
        raise _wrong(where, [f"phase: it says {contract.phase}, but the file is named for {phase}"])
    return contract


def _too_long(where: str) -> ConfigurationError:
    return ConfigurationError(f"the contract {where} has more than {MAX_CONTRACT} bytes", hint="shorten it")


def _wrong(where: str, faults: list[str]) -> ConfigurationError:
    return ConfigurationError(
        f"the contract {where} is wrong: {'; '.join(faults)[:1500]}", hint=f"the front matter has exactly {_FIELDS}"
    )

"""The file that a phase leaves behind: where it may be, what it must contain, and whether it is the one claimed."""

import hashlib
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass

from rookery.core.errors import ValidationFailed
from rookery.domains.tracker.contract import Contract
from rookery.domains.tracker.sections import headings, missing_sections, slug
from rookery.files.tree_files import inside, path_parts, read_inside

TICKETS = "docs/tickets"
MAX_ARTIFACT = 2_000_000
_SHA256 = re.compile(r"(?:sha256:)?([0-9a-f]{64})")


@dataclass(frozen=True, slots=True)
class Artifact:
    """A file as it was read, once. `sha256` is over its bytes, in lower case."""

    path: str
    content: bytes
    sha256: str


def artifact_place(root: str, path: str, *, under: str = TICKETS) -> tuple[str, str]:
    """The path in its plain form, and where it leads. It must be a relative path below `under` in the tree `root`."""
    parts = path_parts(path, "artifact_path")
    folder = tuple(under.split("/"))
    if parts[: len(folder)] != folder or len(parts) == len(folder):
        raise ValidationFailed(
            f"artifact_path {path} is not inside {under}/", hint=f"such as {under}/SYM-001/research.md"
        )
    return "/".join(parts), inside(root, parts, folder, "artifact_path")


def read_artifact(root: str, path: str, *, under: str = TICKETS) -> Artifact:
    """The artifact at `path`, relative to `root`. Refuses what is not a plain file inside `under`, or too long."""
    plain, place = artifact_place(root, path, under=under)
    what = f"Artifact {plain}"
    if os.path.islink(os.path.join(root, plain)):
        raise ValidationFailed(f"{what} is a symbolic link", hint="write the file itself there")
    content = read_inside(root, place, MAX_ARTIFACT, what)
    if content is None:
        raise ValidationFailed(f"{what} does not exist", hint="write it, run sha256sum on it, then claim again")
    return Artifact(plain, content, hashlib.sha256(content).hexdigest())


def plain_hash(given: str) -> str:
    """64 hexadecimal digits in lower case, also from `SHA256:ABC…`."""
    found = _SHA256.fullmatch(given.strip().lower())
    if found is None:
        raise ValidationFailed(
            "artifact_hash is not a SHA-256 (64 hexadecimal digits)", hint="give what sha256sum prints for the artifact"
        )
    return found[1]


def check_hash(artifact: Artifact, given: str) -> None:
    """Refuse unless the claim is about the file as it is."""
    claimed = plain_hash(given)
    if claimed != artifact.sha256:
        raise ValidationFailed(
            f"Artifact hash mismatch: {artifact.path} has {artifact.sha256[:12]}…, the claim says {claimed[:12]}…",
            hint=f"run sha256sum {artifact.path} after the last edit and claim what it prints",
        )


def check_name(path: str, contract: Contract) -> None:
    """Refuse a file that is called neither as the contract says nor for its phase."""
    names = (contract.artifact, f"{contract.phase}.md")
    folder, _, name = path.rpartition("/")
    if name not in names:
        wanted = " or ".join(dict.fromkeys(name for name in names if name))
        raise ValidationFailed(
            f"the artifact of {contract.phase} is called {wanted}, not {name}", hint=f"{folder}/{wanted}"
        )


def artifact_text(artifact: Artifact) -> str:
    """The content as text, exactly; what is not text is refused."""
    try:
        text = artifact.content.decode()
    except UnicodeDecodeError as error:
        raise ValidationFailed(
            f"Artifact is not UTF-8 (byte {error.start})", hint="save it as UTF-8 and claim the new hash"
        ) from error
    if (at := text.find("\0")) >= 0:
        raise ValidationFailed(f"Artifact contains a NUL character (at {at})", hint="remove it and claim the new hash")
    return text


def check_artifact(content: str, contract: Contract) -> None:
    """Refuse a text that is too short, has no heading or lacks a section, in this order, and say what is missing."""
    text = content.removeprefix("\ufeff")
    length = len(text.strip())
    if length < contract.min_chars:
        raise ValidationFailed(
            f"Artifact content too short ({length} chars, minimum {contract.min_chars})",
            hint=f"add at least {contract.min_chars - length} characters and claim the new hash",
        )
    found = headings(text)
    if not found:
        raise ValidationFailed(
            "Artifact does not appear to be Markdown — no headings found", hint=_to_add(contract.required_sections)
        )
    if missing := missing_sections(found, contract.required_sections):
        raise ValidationFailed(
            f"Artifact missing required sections: {', '.join(slug(section) for section in missing)}",
            hint=_to_add(missing),
        )


def promotion_target(root: str, path: str) -> str:
    """Where an approved artifact is copied to, in plain form: a Markdown file in docs/, but not in docs/tickets/."""
    parts = path_parts(path, "promote_to")
    hint = "such as docs/design/login.md"
    if len(parts) < 2 or parts[0] != "docs":
        raise ValidationFailed(f"promote_to {path} is not inside docs/", hint=hint)
    if parts[1].lower() == "tickets":
        raise ValidationFailed(f"promote_to {path} is inside {TICKETS}/, where artifacts are already", hint=hint)
    if not parts[-1].lower().endswith(".md") or parts[-1].lower() == ".md":
        raise ValidationFailed(f"promote_to {path} does not end in .md", hint=hint)
    place = inside(root, parts, ("docs",), "promote_to")
    tickets = os.path.realpath(os.path.join(root, TICKETS))
    if place == tickets or place.startswith(f"{tickets}/"):
        raise ValidationFailed(f"promote_to {path} leads into {TICKETS}/", hint=hint)
    if os.path.lexists(place) and not os.path.isfile(place):
        raise ValidationFailed(f"promote_to {path} is there and is not a file", hint="choose another name")
    return "/".join(parts)


def _to_add(sections: Sequence[str]) -> str:
    wanted = ", ".join(f"## {section}" for section in sections) or "a heading such as # Research"
    return f"add {wanted} and claim the new hash"

"""Puts files that people bring along into a vault's folder. Nothing is followed out of it, whoever moves links."""

import contextlib
import os
import secrets
from collections.abc import Sequence

from rookery.core.errors import Conflict, ValidationFailed
from rookery.domains.knowledge.extract import KINDS
from rookery.domains.knowledge.vault_store import Vault
from rookery.domains.knowledge.walk import covered, is_hidden

FOLDER = "uploads"
MAX_NAME_BYTES = 150
_OPEN_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def checked_name(text: str) -> str:
    """The file's name: one plain part of a path, with an ending that says what it is."""
    name = text.strip()
    hint = "rename the file: letters, digits, spaces, dots and dashes are fine"
    if not name or "/" in name or "\\" in name or not name.isprintable():
        raise ValidationFailed("name: is empty, or has a slash or a character that cannot be printed", hint=hint)
    if len(name.encode()) > MAX_NAME_BYTES:
        raise ValidationFailed(f"name: is longer than {MAX_NAME_BYTES} bytes", hint=hint)
    if is_hidden((name,)):
        raise ValidationFailed(f"name: {name} is hidden", hint="rename the file so that it does not begin with a dot")
    if os.path.splitext(name)[1].lower() not in KINDS:
        raise ValidationFailed(
            f"name: {name} has no ending that can be read", hint="such as .md, .txt, .html, .pdf or one of source code"
        )
    return name


def place_of(vault: Vault, name: str) -> tuple[str, ...]:
    """Where in the vault a file of this name goes; refused where its patterns leave it out."""
    first = vault.folders[0].split("/") if vault.folders else []
    parts = (*(part for part in first if part not in ("", ".")), FOLDER, name)
    if not covered(parts, vault.folders, vault.globs):
        raise ValidationFailed(
            f"{'/'.join(parts)} does not belong to the vault of project {vault.slug}",
            hint=f"its patterns are {', '.join(vault.globs)}; configure_vault changes them",
        )
    return parts


def put_file(root: str, parts: Sequence[str], content: bytes, *, replace: bool) -> None:
    """Write a file at this place in `root`, whole or not at all. One that is there is kept unless it is replaced."""
    folder = _made(os.path.realpath(root), parts[:-1])
    draft = f".upload-{secrets.token_hex(8)}"
    try:
        if not replace and _is_there(folder, parts[-1]):
            raise Conflict(f"there is a file {'/'.join(parts)} already", hint="say that it is to be replaced")
        _write(folder, draft, content)
        # A link at that name is replaced itself, never followed.
        os.rename(draft, parts[-1], src_dir_fd=folder, dst_dir_fd=folder)
    except OSError as failure:
        raise ValidationFailed(
            f"{'/'.join(parts)} cannot be written: {failure.strerror}", hint="the server's owner looks at its folder"
        ) from failure
    finally:
        with contextlib.suppress(OSError):
            os.unlink(draft, dir_fd=folder)
        os.close(folder)


def _made(root: str, parts: Sequence[str]) -> int:
    """The folder, made if need be, step by step: a link on the way is refused."""
    folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in parts:
            with contextlib.suppress(FileExistsError):
                os.mkdir(part, 0o755, dir_fd=folder)
            inner = os.open(part, _OPEN_FOLDER, dir_fd=folder)
            os.close(folder)
            folder = inner
    except OSError as failure:
        os.close(folder)
        raise ValidationFailed(
            f"the folder {'/'.join(parts)} cannot be used: {failure.strerror}",
            hint="it must be a plain folder and no link",
        ) from failure
    return folder


def _is_there(folder: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _write(folder: int, name: str, content: bytes) -> None:
    file = os.open(name, _NEW_FILE, 0o644, dir_fd=folder)
    with os.fdopen(file, "wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())

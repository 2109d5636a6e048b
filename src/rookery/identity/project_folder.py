"""The folder of a project, as it is kept."""

from rookery.core.errors import ValidationFailed


def absolute_folder(path: str) -> str:
    """The folder, with no slash at its end. Refused unless absolute: servers and workers start in their own folders."""
    if not path.startswith("/") or "\0" in path:
        raise ValidationFailed(f"{path!r} is no absolute path", hint="give the whole path, such as /srv/shop")
    return path.rstrip("/") or "/"

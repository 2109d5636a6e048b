"""Which repositories and accounts the owner lets agents touch. Pure."""

from collections.abc import Collection

from rookery.core.errors import PermissionDenied


def check_allowed(allow: Collection[str], place: str) -> None:
    """PermissionDenied unless the owner or owner/name is covered by the setting `github_allow`; empty allows all."""
    small = place.lower()
    if not allow or small in allow or small.partition("/")[0] in allow:
        return
    raise PermissionDenied(
        f"{place} is not among what the owner allows on GitHub",
        hint="the owner can add it to the setting github_allow",
        layer="github_allow",
    )

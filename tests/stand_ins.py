"""Stand-ins for tools of the seeds whose domains are not built yet, so that the permission rules can be tried on them.

A stand-in goes when its domain comes: two tools of one name stop the start.
"""

from rookery.core.context import Context
from rookery.core.tool import NoInput, Tool, ToolOutput, tool


class Did(ToolOutput):
    did: str


def _stand_in(name: str, **how: object) -> Tool:
    def handler(ctx: Context, args: NoInput) -> Did:
        return Did(did=name)

    handler.__name__ = name
    handler.__doc__ = f"Stands in for {name}. Use it in tests. Returns its name. Does nothing else."
    declared: dict[str, object] = {
        "title": name,
        "effect": "read",
        "action": "seed:use",
        "tier": "act",
        "group": "Write",
        "profiles": "",
        "default": True,
        "inline": True,
    }
    return tool(**{**declared, **how})(handler)  # pyright: ignore[reportArgumentType]


delete_everything = _stand_in("delete_everything", default=False, profiles="W", tier="destructive")

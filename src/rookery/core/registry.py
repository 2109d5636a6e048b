"""The one registry. Every list of tools is a question to it; none is written down elsewhere."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from types import ModuleType

from rookery.core.actor import Actor
from rookery.core.decide import decide
from rookery.core.errors import ConfigurationError, NotFound
from rookery.core.tool import Tool, plain_name


class Registry:
    """Tools by name. Filled once at the start, then only read."""

    def __init__(self) -> None:
        self._tools: dict[str, Tool] = {}

    def __iter__(self) -> Iterator[Tool]:
        """All tools, ordered by name so that listings are the same everywhere."""
        return iter(sorted(self._tools.values(), key=lambda tool: tool.name))

    def __len__(self) -> int:
        return len(self._tools)

    def __contains__(self, name: str) -> bool:
        return plain_name(name) in self._tools

    def add(self, tool: Tool, domain: str) -> None:
        """Take `tool` in. Two tools of one name stop the start: neither can be trusted to be the one meant."""
        if plain_name(tool.name) != tool.name:
            raise ConfigurationError(
                f"{tool.module} declares {tool.name}, but corvid_ is an alias and no part of a name",
                hint=f"call it {plain_name(tool.name)}",
            )
        known = self._tools.get(tool.name)
        if known is not None:
            raise ConfigurationError(
                f"the tool {tool.name} is declared twice, in {known.module} and in {tool.module}",
                hint="rename one of them or remove the plugin",
            )
        self._tools[tool.name] = replace(tool, domain=domain)

    def add_module(self, module: ModuleType, domain: str) -> None:
        """Take in every tool that `module` itself declares."""
        for value in list(vars(module).values()):
            if isinstance(value, Tool) and value.module == module.__name__:
                self.add(value, domain)

    def get(self, name: str) -> Tool | None:
        """The tool of that name, `corvid_` spelling included, or None."""
        return self._tools.get(plain_name(name))

    def require(self, name: str) -> Tool:
        """The tool of that name, or NotFound with the names that come near."""
        found = self.get(name)
        if found is None:
            raise NotFound(f"there is no tool {name}", hint=self.suggest(name))
        return found

    def suggest(self, name: str) -> str:
        """A hint for a name that is not known."""
        words = set(plain_name(name).split("_"))
        near = [known for known in sorted(self._tools) if words & set(known.split("_"))][:5]
        return f"did you mean {', '.join(near)}?" if near else "rookery tools --as-owner lists every tool"

    def listed(self, actor: Actor) -> list[Tool]:
        """The tools that `actor` may call, by name."""
        return [tool for tool in self if decide(actor, tool).listed]

    def unknown(self, names: Iterable[str]) -> list[str]:
        """Those of `names` that no tool has."""
        return sorted(name for name in names if name not in self)

    def in_bundle(self, preset: str) -> frozenset[str]:
        """The tools that declare themselves part of a preset bundle."""
        return frozenset(tool.name for tool in self._tools.values() if preset in tool.bundles)

    def critical(self, profile: str) -> frozenset[str]:
        """The tools without which a profile cannot do its work."""
        return frozenset(tool.name for tool in self._tools.values() if profile in tool.critical)

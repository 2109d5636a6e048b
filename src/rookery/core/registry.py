"""The one registry. Every list of tools is a question to it; none is written down elsewhere."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from types import ModuleType
from typing import TypeVar

from rookery.core.actor import Actor
from rookery.core.decide import decide
from rookery.core.declared import Declared
from rookery.core.errors import ConfigurationError, NotFound
from rookery.core.prompt import Prompt
from rookery.core.resource import Resource
from rookery.core.tool import Tool, plain_name

D = TypeVar("D", bound=Declared)


class Registry:
    """Tools, resources and prompts by name. Filled once at the start, then only read.

    To iterate, to look up and to list means tools, unless the method names resources or prompts.
    """

    def __init__(self) -> None:
        self._tools: dict[str, Tool] = {}
        self._resources: dict[str, Resource] = {}
        self._prompts: dict[str, Prompt] = {}
        self._addresses: dict[str, Resource] = {}
        self._templates: dict[str, list[Resource]] = {}
        self._sealed = False

    def copy(self) -> "Registry":
        """Another registry with the same declarations, to be filled further."""
        other = Registry()
        other._tools, other._resources, other._prompts = dict(self._tools), dict(self._resources), dict(self._prompts)
        return other

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
            raise _twice(f"the tool {tool.name}", known.module, tool.module)
        self._tools[tool.name] = replace(tool, domain=domain)
        self._sealed = False

    def add_resource(self, resource: Resource, domain: str) -> None:
        """Take `resource` in. Two of one name or at the same addresses stop the start."""
        for known in self._resources.values():
            if known.template.shape == resource.template.shape:
                raise _twice(f"the address {resource.template.text}", known.module, resource.module)
        self._add(self._resources, resource, domain)

    def add_prompt(self, prompt: Prompt, domain: str) -> None:
        """Take `prompt` in. Two of one name stop the start."""
        self._add(self._prompts, prompt, domain)

    def _add(self, known: dict[str, D], declared: D, domain: str) -> None:
        if declared.name in known:
            raise _twice(f"the {declared.kind} {declared.name}", known[declared.name].module, declared.module)
        known[declared.name] = replace(declared, domain=domain)
        self._sealed = False

    def add_module(self, module: ModuleType, domain: str) -> None:
        """Take in every tool, resource and prompt that `module` itself declares."""
        for value in list(vars(module).values()):
            if not isinstance(value, Tool | Declared) or value.module != module.__name__:
                continue
            if isinstance(value, Tool):
                self.add(value, domain)
            elif isinstance(value, Resource):
                self.add_resource(value, domain)
            elif isinstance(value, Prompt):
                self.add_prompt(value, domain)

    def seal(self) -> None:
        """Give each resource and prompt the right that it names; one that no tool has stops the start."""
        if self._sealed:
            return
        self._resources = {name: self._with_right(self._resources[name]) for name in sorted(self._resources)}
        self._prompts = {name: self._with_right(self._prompts[name]) for name in sorted(self._prompts)}
        self._addresses, self._templates = {}, {}
        for resource in sorted(self._resources.values(), key=lambda resource: resource.template.order):
            if resource.template.variables:
                self._templates.setdefault(resource.template.scheme, []).append(resource)
            else:
                self._addresses[resource.template.text] = resource
        self._sealed = True

    def _with_right(self, declared: D) -> D:
        right = self._tools.get(declared.right)
        if right is None:
            raise ConfigurationError(
                f"the {declared.kind} {declared.name} of {declared.module} needs the right of {declared.right}, "
                "and there is no such tool",
                hint=self.suggest(declared.right),
            )
        return declared.sealed(right)

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

    def everything(self) -> list[Tool | Declared]:
        """Every tool, resource and prompt, as declared; none is given its right for this."""
        return [*self, *self._resources.values(), *self._prompts.values()]

    def resources(self, actor: Actor | None = None) -> list[Resource]:
        """The resources and templates that `actor` may read, by name; without an actor all of them."""
        self.seal()
        return _allowed(self._resources.values(), actor)

    def prompts(self, actor: Actor | None = None) -> list[Prompt]:
        """The prompts that `actor` may have, by name; without an actor all of them."""
        self.seal()
        return _allowed(self._prompts.values(), actor)

    def find_resource(self, uri: str) -> tuple[Resource, dict[str, str]] | None:
        """The resource at `uri` and the values of its variables, or None. An address that plays tricks has none."""
        self.seal()
        found = self._addresses.get(uri)
        if found is not None:
            return found, {}
        for resource in self._templates.get(f"{uri.partition(':')[0]}:", ()):
            values = resource.template.match(uri)
            if values is not None:
                return resource, values
        return None

    def template(self, text: str) -> Resource | None:
        """The resource that was declared with exactly this template or address, or None."""
        return next((each for each in self.resources() if each.template.text == text), None)

    def prompt(self, name: str) -> Prompt | None:
        """The prompt of that name, or None."""
        self.seal()
        return self._prompts.get(name)

    def unknown(self, names: Iterable[str]) -> list[str]:
        """Those of `names` that no tool has."""
        return sorted(name for name in names if name not in self)

    def in_bundle(self, preset: str) -> frozenset[str]:
        """The tools that declare themselves part of a preset bundle."""
        return frozenset(tool.name for tool in self._tools.values() if preset in tool.bundles)

    def critical(self, profile: str) -> frozenset[str]:
        """The tools without which a profile cannot do its work."""
        return frozenset(tool.name for tool in self._tools.values() if profile in tool.critical)


def _allowed(declared: Iterable[D], actor: Actor | None) -> list[D]:
    return [each for each in declared if actor is None or decide(actor, each.tool).listed]


def _twice(what: str, first: str, second: str) -> ConfigurationError:
    return ConfigurationError(
        f"{what} is declared twice, in {first} and in {second}", hint="rename one of them or remove the plugin"
    )

"""`rookery tools`: what a session would see, or the whole registry as documentation."""

from itertools import groupby
from typing import TYPE_CHECKING

import click

from rookery.cli.session import Bound, actor_of, flag_options, flags_of, opened
from rookery.cli.show import groups, print_json

if TYPE_CHECKING:
    from rookery.core.tool import Tool


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print a list of objects.")
@click.option("--tokens", "with_tokens", is_flag=True, help="Add what each tool costs in an agent's context.")
@click.option("--markdown", is_flag=True, help="Print the documentation of every tool of the product.")
@flag_options(leave_out=("--direct",))
def tools(as_json: bool, with_tokens: bool, markdown: bool, **bound: Bound) -> None:
    """List the tools that a session would see.

    The options are those of `rookery stdio`: with the same ones, this is the list that the agent gets. Without any,
    it is the default agent's; with --as-owner every tool.
    """
    if markdown:
        click.echo(documentation(), nl=False)
        return
    flags = flags_of(bound)
    with opened(flags) as platform:
        listed = platform.registry.listed(actor_of(platform, flags))
    if as_json:
        print_json(as_objects(listed))
    else:
        _print_groups(listed, with_tokens)


def documentation() -> str:
    """docs/tools.md: the tools of the product without plugins, the same on every machine."""
    from rookery.app import load_domains
    from rookery.cli.tool_docs import render

    return render(load_domains(plugins=False).registry)


def as_objects(listed: "list[Tool]") -> list[dict[str, str | int]]:
    """Each tool with exactly its name, domain, effect, tier and tokens."""
    from rookery.core.lint import tokens

    return [
        {
            "name": tool.name,
            "domain": tool.domain,
            "effect": tool.effect,
            "tier": tool.tier,
            "tokens": tokens(tool),
        }
        for tool in listed
    ]


def _print_groups(listed: "list[Tool]", with_tokens: bool) -> None:
    from rookery.core.lint import tokens

    def row(tool: "Tool") -> list[str | int]:
        shown: list[str | int] = [tool.name, tool.effect, tool.tier]
        return [*shown, *([tokens(tool)] if with_tokens else []), tool.title]

    ordered = sorted(listed, key=lambda tool: (tool.domain, tool.name))
    headers = ["tool", "effect", "tier", *(["tokens"] if with_tokens else []), "title"]
    by_domain = {domain: [row(tool) for tool in found] for domain, found in groupby(ordered, lambda tool: tool.domain)}
    groups(by_domain, headers, empty="This session has no tools.")
    if with_tokens:
        click.echo(f"{len(listed)} tools, {sum(tokens(tool) for tool in listed)} tokens")

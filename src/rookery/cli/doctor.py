"""`rookery doctor`: look at everything that an installation needs, and say how to mend what is wrong."""

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from rookery.cli.options import managing
from rookery.cli.show import print_json

if TYPE_CHECKING:
    from rookery.cli.machine import Finding, Machine


@click.command()
@managing
def doctor(home: str | None, as_json: bool) -> None:
    """Check the installation and say how to mend it.

    Changes nothing. Exit code 1 if there is a problem; a note is worth knowing and no problem.
    """
    from rookery.cli.machine import this_machine

    findings = examine(this_machine(home))
    if as_json:
        print_json([finding._asdict() for finding in findings])
    else:
        width = max(len(finding.check) for finding in findings)
        for finding in findings:
            click.echo(f"{finding.state:<8} {finding.check:<{width}}  {finding.sentence}")
            if finding.mend:
                click.echo(f"{'':8} {'':{width}}  -> {finding.mend}")
    if any(finding.state == "problem" for finding in findings):
        sys.exit(1)


def examine(machine: "Machine") -> "list[Finding]":
    """Every check's finding, in the order in which they are worth mending."""
    from rookery.cli import checks, server_checks, stored_checks

    every: tuple[Callable[[Machine], Finding], ...] = (
        checks.check_python,
        checks.check_packages,
        checks.check_extras,
        checks.check_bytecode,
        checks.check_home,
        checks.check_settings,
        checks.check_disk,
        stored_checks.check_plugins,
        checks.check_sqlite,
        stored_checks.check_database,
        stored_checks.check_tokens,
        stored_checks.check_pauses,
        server_checks.check_socket,
        server_checks.check_port,
        checks.check_auth,
        checks.check_mnemonic,
        stored_checks.check_sealing,
        checks.check_git,
        checks.check_github,
    )
    return [check(machine) for check in every]

"""`rookery knowledge`: the documents of a project, which its agents can search."""

from typing import Any

import click

from rookery.cli.options import ListByDefault, given, managing
from rookery.cli.session import call_as_owner
from rookery.cli.show import cell, fields, listing, print_json

project_option = click.option("--project", metavar="SLUG", help="The project; the default one if absent.")


@click.group(cls=ListByDefault)
def knowledge() -> None:
    """Documents of a project that agents can search."""


@knowledge.command("list")
@click.option("--below", metavar="FOLDER", help="Only documents of this folder.")
@project_option
@managing
def list_(below: str | None, project: str | None, home: str | None, as_json: bool) -> None:
    """List the documents by path."""
    from rookery.cli.indexing import Librarian, open_library

    with open_library(home, project) as library:
        found = Librarian(library).documents(below or "")
    shown = ["path", "kind", "chunks", "bytes", "embedder", "title"]
    listing(found, shown, as_json=as_json, empty="no documents; add some: rookery knowledge add PATH…")


@knowledge.command()
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@click.option("--prune", is_flag=True, help="Remove documents below the paths whose files are gone.")
@project_option
@managing
def add(paths: tuple[str, ...], prune: bool, project: str | None, home: str | None, as_json: bool) -> None:
    """Read files and folders of the project and make them searchable; without PATH those of its vault.

    Only changed files are read in. A file that cannot be read is reported and skipped. Whatever was reported as
    indexed stays if the command is ended, and the next one goes on from there.
    """
    from rookery.cli.indexing import Librarian, bar_or_lines, open_library

    with open_library(home, project) as library, bar_or_lines(quiet=as_json) as report:
        done = Librarian(library).add(paths, report, prune=prune)
    if as_json:
        print_json(done)
        return
    counts = {name: len(done[name]) for name in ("indexed", "unchanged", "skipped", "removed")}
    click.echo(", ".join(f"{count} {name}" for name, count in counts.items() if count) or "no files to read")


@knowledge.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@project_option
@managing
def remove(paths: tuple[str, ...], project: str | None, home: str | None, as_json: bool) -> None:
    """Remove documents, or all documents of folders, by their listed paths. Files are not touched."""
    from rookery.cli.indexing import Librarian, open_library

    with open_library(home, project) as library:
        gone = Librarian(library).remove(paths)
    listing(gone, ["path", "chunks"], as_json=as_json)


@knowledge.command()
@click.option("--on/--off", "on", default=None, help="Whether agents can search it.")
@click.option("--folder", "folders", multiple=True, help="A folder that belongs to it, inside the root; . for all.")
@click.option("--glob", "globs", multiple=True, help="A pattern of files that belong to it, as in .gitignore.")
@click.option("--root", metavar="FOLDER", help="The folder of its files, if not that of the project.")
@project_option
@managing
def vault(
    on: bool | None,
    folders: tuple[str, ...],
    globs: tuple[str, ...],
    root: str | None,
    project: str | None,
    home: str | None,
    as_json: bool,
) -> None:
    """Show a project's setting vault, or set it: which files are its knowledge, and whether it can be searched."""
    import os

    arguments = given(on=on, folders=list(folders) or None, globs=list(globs) or None)
    if root is not None:
        arguments["root"] = os.path.abspath(os.path.expanduser(root)) if root else ""
    fields(call_as_owner(home, "configure_vault", arguments, project=project), as_json=as_json)


@knowledge.command()
@click.argument("query")
@click.option("--top-k", type=int, help="At most this many passages; 5 if absent.")
@click.option("--min-score", type=float, help="The least score of a passage, from 0 to 1; 0.3 if absent.")
@project_option
@managing
def search(
    query: str, top_k: int | None, min_score: float | None, project: str | None, home: str | None, as_json: bool
) -> None:
    """Search the documents as an agent would."""
    arguments = given(query=query, top_k=top_k, min_score=min_score)
    found = call_as_owner(home, "search_knowledge", arguments, project=project)
    if as_json:
        print_json(found)
        return
    results: list[dict[str, Any]] = found["results"]
    for each in results:
        click.echo(f"{cell(each['path'])}  {cell(each['heading'])}  {each['score']:.2f}")
        for line in each["text"].strip().split("\n")[:6]:
            click.echo(f"    {cell(line)}")
    click.echo(f"{len(results) or 'no'} passages, found by {found['method']}")

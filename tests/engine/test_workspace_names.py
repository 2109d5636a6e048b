"""Names of folders and branches: none escapes, none is anybody else's, and git takes all of them."""

import os
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rookery.engine.workspace_names import Site, branch_names, folder_name, free, inside, is_ours, readable

HOSTILE = (
    "../../etc/passwd",
    "..",
    ".",
    "",
    "/",
    "a/b/c",
    "-rf",
    "--upload-pack=x",
    "ÄÖÜ-12",
    "日本語-7",
    "x" * 5_000,
    "a..b.lock",
    "HEAD",
    "@{-1}",
    "a\nb",
    "a\x00b",
    "CON",
    "\udcff",
)


def site(slug: str = "shop") -> Site:
    return Site(project_id="prj_1", slug=slug, repository="/srv/shop", base_branch="main", root="/srv/trees")


@pytest.mark.parametrize("identifier", HOSTILE)
def test_no_identifier_leads_out_of_the_folder_or_is_refused_by_git(identifier: str) -> None:
    for slug in ("shop", identifier):
        path = site(slug).workspace("iss_1", identifier)
        assert os.path.dirname(os.path.dirname(os.path.normpath(path))) == "/srv/trees"
        assert len(os.path.basename(path)) <= 80
    for branch in branch_names(identifier, "iss_1"):
        checked = subprocess.run(["git", "check-ref-format", "--branch", branch], capture_output=True, check=False)
        assert checked.returncode == 0, branch
        assert is_ours(branch)


@given(st.text(), st.text(), st.text(min_size=1), st.text(min_size=1))
def test_two_issues_never_share_a_folder_or_their_own_branch(one: str, other: str, first: str, second: str) -> None:
    if first == second:
        return
    assert folder_name(one, first).casefold() != folder_name(other, second).casefold()
    mine, theirs = branch_names(one, first)[1:], branch_names(other, second)[1:]
    assert not {name.casefold() for name in mine} & {name.casefold() for name in theirs}


def test_names_are_readable() -> None:
    assert readable("SYM-012") == "SYM-012"
    assert readable("Größe/Übung 7") == "Gro-e-Ubung-7"
    assert branch_names("SYM-12", "iss_1")[0] == "rookery/SYM-12"
    assert branch_names("日本語", "iss_1")[0].startswith("rookery/x-")


def test_a_name_is_free_if_git_can_keep_it_beside_the_others_on_every_file_system() -> None:
    assert not free("rookery/SYM-1", ["rookery/sym-1"])
    assert not free("rookery/SYM-1", ["rookery"])
    assert not free("rookery/SYM-1", ["rookery/SYM-1/more"])
    assert free("rookery/SYM-1", ["rookery/SYM-10", "main", "rookery-SYM-1"])


def test_only_names_that_we_give_are_ours() -> None:
    for name in ("main", "rookery", "rookery/", "rookery/../x", "rookery/a b", "rookery/a.lock", "feature/rookery/a"):
        assert not is_ours(name)


def test_a_folder_beside_another_of_the_same_beginning_is_not_inside() -> None:
    assert inside("/srv/shop/a", "/srv/shop")
    assert inside("/srv/shop", "/srv/shop")
    assert not inside("/srv/shopping", "/srv/shop")

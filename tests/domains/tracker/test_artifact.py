import contextlib
import hashlib
import os
import socket
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rookery.core.errors import ValidationFailed
from rookery.domains.tracker.artifact import (
    MAX_ARTIFACT,
    Artifact,
    artifact_place,
    artifact_text,
    check_artifact,
    check_hash,
    check_name,
    plain_hash,
    promotion_target,
    read_artifact,
)
from rookery.domains.tracker.contract import packaged_contract
from rookery.domains.tracker.sections import headings, slug
from rookery.files.tree_files import read_inside
from tests.domains.tracker.claimant import good_text

SECRET = b"# what nobody may read\n"
RESEARCH = packaged_contract("research")


def make_tree(root: Path) -> Path:
    """A project with an artifact, and with links that lead everywhere."""
    outside = root / "outside"
    (outside / "docs" / "tickets" / "A").mkdir(parents=True)
    for secret in (outside / "research.md", outside / "docs" / "tickets" / "A" / "research.md", root / "research.md"):
        secret.write_bytes(SECRET)
    tree = root / "tree"
    tickets = tree / "docs" / "tickets"
    (tickets / "A").mkdir(parents=True)
    (tickets / "A" / "research.md").write_text("# Found\n")
    (tree / "src").mkdir()
    (tree / "src" / "research.md").write_bytes(SECRET)
    (tickets / "out").symlink_to(outside)
    (tickets / "up").symlink_to("../../..")
    (tickets / "src").symlink_to("../../src")
    (tickets / "gone").symlink_to(root / "not there")
    (tickets / "loop").symlink_to("loop")
    (tickets / "B").symlink_to("A")
    (tickets / "A" / "link.md").symlink_to(outside / "research.md")
    (tickets / "A" / "same.md").symlink_to("research.md")
    (tree / "linked").mkdir()
    (tree / "linked" / "docs").symlink_to(outside / "docs")
    return tree


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return make_tree(tmp_path)


@pytest.fixture(scope="module")
def shared_tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tree(tmp_path_factory.mktemp("trees"))


def says(kind: type[Exception], call: Callable[[], object]) -> str:
    with pytest.raises(kind) as caught:
        call()
    assert getattr(caught.value, "hint", None)
    return str(caught.value)


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/etc/passwd",
        "~/research.md",
        "../docs/tickets/A/research.md",
        "docs/tickets/../../../research.md",
        "docs/tickets/A/../A/research.md",
        "docs/tickets",
        "docs/tickets/",
        "docs/tickets/.",
        "docs/ticketsA/research.md",
        "docs/Tickets/A/research.md",
        "docs/research.md",
        "research.md",
        "docs\\tickets\\A\\research.md",
        "docs/tickets/A/..\\research.md",
        "docs/tickets/A\0/research.md",
        "docs/tickets/A/research.md\n",
        "docs/tickets/\ud800/research.md",
        "docs/tickets/.git/research.md",
        "docs/tickets/" + "a" * 1000,
    ],
)
def test_a_path_that_is_not_plainly_inside_the_tickets_is_refused(tree: Path, path: str) -> None:
    told = says(ValidationFailed, lambda: read_artifact(str(tree), path))
    assert "artifact_path" in told
    assert "symbolic link" not in told


@pytest.mark.parametrize("folder", ["out", "up", "src", "gone", "out/docs/tickets/A", "up/outside"])
def test_a_link_that_leads_out_is_refused_wherever_it_is(tree: Path, folder: str) -> None:
    for path in (f"docs/tickets/{folder}/research.md", f"docs/tickets/{folder}/no/such/research.md"):
        assert "symbolic link" in says(ValidationFailed, lambda path=path: artifact_place(str(tree), path))
    assert "symbolic link" in says(ValidationFailed, lambda: read_artifact(str(tree), "docs/tickets/A/link.md"))
    assert "symbolic link" in says(ValidationFailed, lambda: read_artifact(str(tree), "docs/tickets/A/same.md"))


def test_a_link_that_appears_after_the_check_is_not_followed(tree: Path) -> None:
    _, place = artifact_place(str(tree), "docs/tickets/A/research.md")
    (tree / "docs" / "tickets" / "A").rename(tree / "docs" / "tickets" / "C")
    (tree / "docs" / "tickets" / "A").symlink_to(tree.parent / "outside")
    assert read_inside(str(tree), place, 100, "it") is None
    (tree / "docs" / "tickets" / "A").unlink()
    (tree / "docs" / "tickets" / "A").mkdir()
    Path(place).symlink_to(tree.parent / "outside" / "research.md")
    assert "it cannot be read" in says(ValidationFailed, lambda: read_inside(str(tree), place, 100, "it"))


@pytest.mark.parametrize(
    "path", ["tree/../research.md", "tree/src/../../research.md", "research.md", "tree", "treehouse"]
)
def test_a_place_that_is_not_below_the_tree_is_not_read(tree: Path, path: str) -> None:
    place = f"{tree.parent}/{path}"
    assert "leads out of the tree" in says(ValidationFailed, lambda: read_inside(str(tree), place, 100, "it"))


def test_a_tree_whose_docs_are_elsewhere_has_no_artifacts(tree: Path) -> None:
    linked = str(tree / "linked")
    assert "symbolic link" in says(ValidationFailed, lambda: read_artifact(linked, "docs/tickets/A/research.md"))


def test_what_is_no_regular_file_is_refused_and_never_waited_for(tree: Path) -> None:
    folder = tree / "docs" / "tickets" / "A"
    os.mkfifo(folder / "fifo.md")
    (folder / "folder.md").mkdir()
    short = os.path.relpath(folder / "socket.md")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(min(short, str(folder / "socket.md"), key=len))
        for name in ("fifo.md", "folder.md", "socket.md"):
            assert name in says(ValidationFailed, lambda name=name: read_artifact(str(tree), f"docs/tickets/A/{name}"))
    for missing in ("A/none.md", "none/research.md", "A/research.md/research.md"):
        told = says(ValidationFailed, lambda missing=missing: read_artifact(str(tree), f"docs/tickets/{missing}"))
        assert "does not exist" in told
    says(ValidationFailed, lambda: read_artifact(str(tree), "docs/tickets/loop/research.md"))


def test_an_artifact_that_is_too_long_is_refused_with_the_numbers(tree: Path) -> None:
    file = tree / "docs" / "tickets" / "A" / "research.md"
    file.write_bytes(b"x" * MAX_ARTIFACT)
    assert len(read_artifact(str(tree), "docs/tickets/A/research.md").content) == MAX_ARTIFACT
    file.write_bytes(b"x" * (MAX_ARTIFACT + 1))
    told = says(ValidationFailed, lambda: read_artifact(str(tree), "docs/tickets/A/research.md"))
    assert f"({MAX_ARTIFACT + 1} bytes, maximum {MAX_ARTIFACT})" in told


def test_an_artifact_is_read_byte_for_byte_under_its_plain_path(tree: Path) -> None:
    (tree / "docs" / "tickets" / "A" / "research.md").write_bytes(b"\xef\xbb\xbf# Found\r\n")
    for path in ("docs/tickets/A/research.md", "./docs//tickets/./A/research.md", "docs/tickets/B/research.md"):
        found = read_artifact(str(tree), path)
        assert found.content == b"\xef\xbb\xbf# Found\r\n"
        assert found.sha256 == hashlib.sha256(found.content).hexdigest()
        assert found.path == path.replace("./", "").replace("//", "/")
        assert artifact_text(found).encode() == found.content


PIECES = ["..", ".", "", "docs", "tickets", "A", "B", "out", "up", "src", "gone", "loop", "outside", "link.md"]
PATHS = st.one_of(
    st.text(max_size=60),
    st.lists(st.sampled_from([*PIECES, "same.md", "research.md", "~", "\0", "C:\\x", "…"]), max_size=9).map("/".join),
    st.lists(st.sampled_from(PIECES), max_size=6).map(lambda parts: "/".join(["docs/tickets", *parts, "research.md"])),
)


@given(path=PATHS)
@settings(max_examples=500, deadline=None)
def test_no_path_reads_anything_outside_the_tickets(shared_tree: Path, path: str) -> None:
    try:
        found = read_artifact(str(shared_tree), path)
    except ValidationFailed:
        return
    assert found.content == b"# Found\n"
    assert found.path.startswith("docs/tickets/")
    assert ".." not in found.path.split("/")


@given(path=PATHS)
@settings(max_examples=500, deadline=None)
def test_no_artifact_is_promoted_out_of_the_documentation(shared_tree: Path, path: str) -> None:
    try:
        target = promotion_target(str(shared_tree), path)
    except ValidationFailed:
        return
    real = os.path.realpath(shared_tree / target)
    assert real.startswith(f"{shared_tree / 'docs'}/")
    assert not real.startswith(f"{shared_tree / 'docs' / 'tickets'}/")
    assert target.lower().endswith(".md")


@pytest.mark.parametrize(
    ("target", "why"),
    [
        ("design.md", "not inside docs/"),
        ("src/design.md", "not inside docs/"),
        ("docs", "not inside docs/"),
        ("docs/../src/design.md", "leads upwards"),
        ("/docs/design.md", "not relative"),
        ("docs/tickets/A/design.md", "docs/tickets/"),
        ("docs/TICKETS/design.md", "docs/tickets/"),
        ("docs/design.txt", ".md"),
        ("docs/.md", ".md"),
        ("docs/shelf/design.md", "symbolic link"),
        ("docs/shortcut/design.md", "docs/tickets/"),
        ("docs/folder.md", "not a file"),
    ],
)
def test_a_place_that_is_not_documentation_is_refused(tree: Path, target: str, why: str) -> None:
    (tree / "docs" / "shelf").symlink_to(tree.parent / "outside")
    (tree / "docs" / "shortcut").symlink_to("tickets")
    (tree / "docs" / "folder.md").mkdir()
    assert why in says(ValidationFailed, lambda: promotion_target(str(tree), target))


def test_a_place_in_the_documentation_is_taken_in_its_plain_form(tree: Path) -> None:
    (tree / "docs" / "there.md").write_text("# Old\n")
    assert promotion_target(str(tree), "./docs//new/login.md") == "docs/new/login.md"
    assert promotion_target(str(tree), "docs/there.md") == "docs/there.md"


def test_a_hash_is_compared_whatever_its_case_and_prefix() -> None:
    artifact = Artifact("docs/tickets/A/research.md", b"x", hashlib.sha256(b"x").hexdigest())
    for given_hash in (
        artifact.sha256,
        artifact.sha256.upper(),
        f"sha256:{artifact.sha256}",
        f" SHA256:{artifact.sha256}\n",
    ):
        check_hash(artifact, given_hash)
    for wrong in ("", "abc", "md5:" + artifact.sha256, artifact.sha256[:-1], artifact.sha256 + "0", "g" * 64):
        assert "64" in says(ValidationFailed, lambda wrong=wrong: plain_hash(wrong))
    told = says(ValidationFailed, lambda: check_hash(artifact, "0" * 64))
    assert artifact.sha256[:12] in told
    assert "000000000000…" in told


def test_an_artifact_is_called_as_its_contract_or_its_phase_says() -> None:
    design = packaged_contract("architecture")
    for name in ("design.md", "architecture.md"):
        check_name(f"docs/tickets/A/{name}", design)
    for name in ("research.md", "Design.md", "xdesign.md", "design.md.txt"):
        told = says(ValidationFailed, lambda name=name: check_name(f"docs/tickets/A/{name}", design))
        assert "design.md or architecture.md" in told


def test_what_is_not_text_is_refused() -> None:
    for content, where in ((b"# ok\xff", "byte 4"), (b"# ok\0", "at 4")):
        artifact = Artifact("docs/tickets/A/research.md", content, "")
        assert where in says(ValidationFailed, lambda artifact=artifact: artifact_text(artifact))


def test_a_text_of_99_characters_is_too_short_and_one_of_100_is_not() -> None:
    free = replace(RESEARCH, required_sections=())
    text = "# " + "x" * 97
    told = says(ValidationFailed, lambda: check_artifact(f"\n\n  {text}  \n\n", free))
    assert told == "Artifact content too short (99 chars, minimum 100)"
    check_artifact(f"\n{text}y\n", free)
    assert says(ValidationFailed, lambda: check_artifact("\ufeff" + " " * 500, free)) == (
        "Artifact content too short (0 chars, minimum 100)"
    )


def test_a_text_without_headings_is_no_markdown() -> None:
    hidden = "```\n# code\n## Problem\n```\n\n    # indented\n\n> # quoted\n\n- # in a list\n\n<!--\n# a comment\n-->\n"
    for text in ("word " * 40, "#hashtag " * 40, hidden * 3):
        told = says(ValidationFailed, lambda text=text: check_artifact(text, RESEARCH))
        assert told == "Artifact does not appear to be Markdown — no headings found"


def test_missing_sections_are_named_in_their_order() -> None:
    check_artifact(good_text("research"), RESEARCH)
    told = says(
        ValidationFailed,
        lambda: check_artifact(good_text("research", ("Recommendation", "Risks", "Current State")), RESEARCH),
    )
    assert told == "Artifact missing required sections: current-state, risks, recommendation"
    with pytest.raises(ValidationFailed) as caught:
        check_artifact(good_text("research", ("Risks",)), RESEARCH)
    assert "## Risks" in str(caught.value.hint)


@pytest.mark.parametrize(
    "heading",
    [
        "## Risks",
        "### risks",
        "#### RISKS",
        "## 5. Risks",
        "## 2.1 Risks",
        "## **Risks**",
        "## `Risks`:",
        "## Risks (and what we do about them)",
        "## [Risks](#risks)",
        "## ⚠️ Risks ##",
        "Risks\n-----",
    ],
)
def test_a_section_counts_however_its_heading_is_dressed(heading: str) -> None:
    check_artifact(good_text("research", ("Risks",)) + f"\n{heading}\n\nNone.\n", RESEARCH)


@pytest.mark.parametrize(
    "heading",
    [
        "# Risks",
        "##### Risks",
        "## Risk",
        "## No risks",
        "**Risks**",
        "```\n## Risks\n```",
        "> ## Risks",
        "Risks\n=====",
    ],
)
def test_what_only_looks_like_the_section_does_not_count(heading: str) -> None:
    text = good_text("research", ("Risks",)) + f"\n{heading}\n\nNone.\n"
    told = says(ValidationFailed, lambda: check_artifact(text, RESEARCH))
    assert told == "Artifact missing required sections: risks"


def test_an_ampersand_is_a_word() -> None:
    assert slug("Goals & Non-Goals") == slug("goals and non goals") == "goals-and-non-goals"
    assert slug("(x)") == "x"
    assert slug("***") == ""


@given(text=st.text(max_size=400))
@settings(deadline=None)
def test_any_text_is_either_in_order_or_refused(text: str) -> None:
    assert all(1 <= level <= 6 for level, _ in headings(text))
    with contextlib.suppress(ValidationFailed):
        check_artifact(text, RESEARCH)

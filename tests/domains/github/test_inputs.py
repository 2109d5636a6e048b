"""Names: whatever is accepted is a plain part of a path, and nothing that a shell or a server would read otherwise."""

from urllib.parse import quote, urlsplit

from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import ValidationError

from rookery.domains.github.inputs import CreatePr, FollowUser, OfRepo

SIGNS = st.text(st.sampled_from("aZ09_-./%?#&;:@~$`'\"\\ \n\tä\u202e"), max_size=12)


@given(st.one_of(SIGNS, st.builds("{}/{}".format, SIGNS, SIGNS), st.from_regex(r"[\w.-]+/[\w.-]+", fullmatch=True)))
@example("a/.")
@example("a/..")
@example("a/b\n")
def test_an_accepted_repository_stays_what_it_is_in_a_path(text: str) -> None:
    try:
        repo = OfRepo(repo=text).repo
    except ValidationError:
        return
    owner, name = repo.split("/")
    assert quote(repo, safe="/") == repo
    assert urlsplit(f"https://x/repos/{repo}").path == f"/repos/{repo}"
    assert name.strip(".")
    assert not owner.startswith("-")


@given(SIGNS)
def test_an_accepted_account_stays_what_it_is_in_a_path(text: str) -> None:
    try:
        name = FollowUser(username=text).username
    except ValidationError:
        return
    assert quote(name, safe="") == name
    assert not name.startswith("-")


@given(SIGNS)
def test_an_accepted_branch_is_one_word_and_no_option(text: str) -> None:
    try:
        head = CreatePr(repo="acme/shop", title="x", body="", head=text, base=None).head
    except ValidationError:
        return
    assert len(head.split()) == 1
    assert not head.startswith("-")
    assert head.count(":") <= 1

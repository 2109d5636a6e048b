"""What follows from claims and verdicts, without a database."""

from hypothesis import given
from hypothesis import strategies as st

from rookery.domains.tracker.pipeline import AWAITING, Claim, Step, Verdict, following, next_step
from rookery.lifecycle.states import ISSUE, PHASES


def claim(number: int, phase: str = "research", digest: str = "a", outcome: str | None = None) -> Claim:
    return Claim(id=f"pc-{number}", seq=number, phase=phase, hash=digest, payload={}, outcome=outcome, waiting=True)


def verdict(number: int, digest: str = "a", *, approved: bool = True, phase: str = "research") -> Verdict:
    return Verdict(id=f"pv-{number}", seq=number, phase=phase, hash=digest, approved=approved, reason="")


def step(status: str, phase: str, claims: list[Claim], verdicts: list[Verdict]) -> Step | None:
    return next_step(status, phase, claims[-1] if claims else None, claims, verdicts)


def test_nothing_waits_so_nothing_follows() -> None:
    assert step("in_progress", "research", [], []) is None


def test_a_new_claim_is_validated_first_even_if_a_verdict_is_there() -> None:
    found = step("in_progress", "research", [claim(1)], [verdict(2)])
    assert found is not None
    assert (found.kind, found.claim) == ("validate", claim(1))


def test_a_claim_of_ready_opens_a_pull_request() -> None:
    found = step("in_progress", "ready", [claim(1, "ready")], [])
    assert found is not None
    assert found.kind == "open_pr"


def test_a_validated_claim_waits_for_its_verdict() -> None:
    waiting = claim(1, outcome=AWAITING)
    assert step("review", "research", [waiting], []) is None
    for approved, kind in ((True, "approve"), (False, "reject")):
        found = step("review", "research", [waiting], [verdict(2, approved=approved)])
        assert found is not None
        assert (found.kind, found.claim, found.verdict) == (kind, waiting, verdict(2, approved=approved))


def test_an_older_claim_gives_way_to_the_latest() -> None:
    found = step("in_progress", "research", [claim(1), claim(2, digest="b")], [])
    assert found is not None
    assert (found.kind, found.claim, found.outcome) == ("drop", claim(1), "superseded")


def test_a_verdict_on_what_is_not_the_latest_claim_is_dropped_with_a_comment() -> None:
    found = step("review", "research", [claim(3, digest="b", outcome=AWAITING)], [verdict(2, digest="a" * 64)])
    assert found is not None
    assert (found.kind, found.verdict, found.outcome) == ("drop", verdict(2, digest="a" * 64), "stale")
    assert found.comment == "The approval of the research artifact aaaaaaaaaaaa was ignored: the latest claim is for b."


def test_the_same_artifact_claimed_again_keeps_its_verdict() -> None:
    latest = claim(3, outcome=AWAITING)
    found = next_step("review", "research", latest, [latest], [verdict(2)])
    assert found is not None
    assert found.kind == "approve"


def test_a_claim_of_another_phase_is_dropped() -> None:
    found = step("in_progress", "grooming", [claim(1, "research")], [])
    assert found is not None
    assert (found.kind, found.outcome) == ("drop", "superseded")


def test_a_blocked_issue_waits_and_a_finished_one_is_cleared() -> None:
    waiting = claim(1, outcome=AWAITING)
    assert step("blocked", "research", [waiting], [verdict(2)]) is None
    for status in ("done", "cancelled"):
        found = step(status, "research", [waiting], [verdict(2)])
        assert found is not None
        assert (found.kind, found.claim, found.outcome) == ("drop", waiting, "ignored")


digests, phases = st.sampled_from(["a", "b"]), st.sampled_from(PHASES)
some_claims = st.lists(st.tuples(phases, digests, st.sampled_from([None, AWAITING])), max_size=4)
some_verdicts = st.lists(st.tuples(digests, st.booleans(), phases), max_size=4)


@given(st.sampled_from(ISSUE.states), phases, some_claims, some_verdicts)
def test_everything_that_waits_is_dealt_with_in_the_end(
    status: str, phase: str, made: list[tuple[str, str, str | None]], said: list[tuple[str, bool, str]]
) -> None:
    claims = [claim(n * 2, where, digest, outcome) for n, (where, digest, outcome) in enumerate(made)]
    verdicts = [verdict(n * 2 + 1, digest, approved=yes, phase=where) for n, (digest, yes, where) in enumerate(said)]
    latest = claims[-1] if claims else None
    for _ in range(20):
        found = next_step(status, phase, latest, claims, verdicts)
        if found is None:
            break
        if found.kind == "validate":
            assert latest is not None
            latest = claim(latest.seq, latest.phase, latest.hash or "", AWAITING)
            claims = [latest if each.id == latest.id else each for each in claims]
            continue
        gone = {each.id for each in (found.claim, found.verdict) if each is not None}
        claims = [each for each in claims if each.id not in gone]
        verdicts = [each for each in verdicts if each.id not in gone]
        if found.claim is not None and latest is not None and found.claim.id == latest.id:
            latest = None
    else:
        raise AssertionError("it never ends")
    assert status == "blocked" or verdicts == []
    assert status == "blocked" or len(claims) <= 1


def test_the_next_phase_is_the_pipelines_without_those_to_be_skipped() -> None:
    none = frozenset[str]()
    assert [following(phase, PHASES, none) for phase in PHASES] == ["architecture", "grooming", "ready", "ready"]
    assert following("research", ("research", "ready"), none) == "ready"
    assert following("research", PHASES, frozenset({"architecture"})) == "grooming"
    assert following("research", PHASES, frozenset(PHASES)) == "ready"
    assert following("architecture", ("research", "ready"), none) == "ready"

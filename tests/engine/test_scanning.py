"""Which files are examined next: nothing twice, nothing forgotten, and nothing for ever."""

from collections.abc import Collection, Sequence
from typing import Any

from rookery.engine.retrying import MAX_LOST
from rookery.engine.scanning import Batch, Given, Seen, Tried, due_pairs, first_batch, tried_of
from rookery.files.git_trees import TreeFile

RETRIES = 3


def file(path: str, blob: str = "one") -> TreeFile:
    return TreeFile(path, blob, 10)


def given(outcome: str, *paths: str, concept: str = "errors", content: str = "one", made_ms: int = 100) -> Given:
    files = [{"path": path, "content": content} for path in paths]
    return Given(made_ms, outcome, {"concept": concept, "files": files})


def due(files: Sequence[TreeFile], *batches: Given, **more: Any) -> list[tuple[str, str, int]]:
    concepts, seen = more.get("concepts", ["errors"]), more.get("seen", {})
    found = due_pairs(files, concepts, seen, tried_of(batches), RETRIES)
    return [(each.file.path, each.concept, each.tries) for each in found]


def everything(files: Sequence[TreeFile]) -> Collection[str]:
    return {each.path for each in files}


def batch(files: Sequence[TreeFile], size: int, *batches: Given, texts: Any = everything, **more: Any) -> Batch | None:
    concepts, seen = more.get("concepts", ["errors"]), more.get("seen", {})
    return first_batch(due_pairs(files, concepts, seen, tried_of(batches), RETRIES), size, texts)


def test_what_is_covered_and_unchanged_is_never_due() -> None:
    seen = {("a.py", "errors"): Seen("one", True, 5), ("b.py", "errors"): Seen("one", False, 5)}
    assert due([file("a.py"), file("b.py")], seen=seen) == []


def test_what_has_issues_is_left_alone_while_its_ticket_is_open_though_the_file_has_changed() -> None:
    assert due([file("a.py", "two")], seen={("a.py", "errors"): Seen("one", False, 5)}) == []
    assert due([file("a.py", "two")], seen={("a.py", "errors"): Seen("one", True, 5)}) == [("a.py", "errors", 0)]


def test_what_nobody_examined_comes_before_what_has_changed_and_of_that_the_oldest_record_first() -> None:
    files = [file(name, "two") for name in ("a.py", "b.py", "c.py", "d.py")]
    seen = {("a.py", "errors"): Seen("one", True, 30), ("b.py", "errors"): Seen("one", True, 20)}
    assert [each[0] for each in due(files, seen=seen)] == ["c.py", "d.py", "b.py", "a.py"]


def test_a_record_whose_content_nobody_knows_counts_as_changed() -> None:
    assert due([file("a.py")], seen={("a.py", "errors"): Seen(None, True, 5)}) == [("a.py", "errors", 0)]


def test_a_deleted_file_is_not_due_and_a_renamed_one_is_a_new_one() -> None:
    seen = {("old.py", "errors"): Seen("one", True, 5)}
    assert due([file("new.py")], seen=seen) == [("new.py", "errors", 0)]


def test_each_concept_has_pairs_of_its_own_and_a_batch_has_one_concept() -> None:
    files, concepts = [file("a.py"), file("b.py")], ["errors", "races"]
    seen = {("a.py", "errors"): Seen("one", True, 5)}
    assert batch(files, 10, concepts=concepts, seen=seen) == Batch("errors", [file("b.py")])
    seen |= {("b.py", "errors"): Seen("one", True, 5)}
    assert batch(files, 10, concepts=concepts, seen=seen) == Batch("races", files)


def test_a_batch_has_at_most_its_size_and_nothing_due_is_no_batch() -> None:
    files = [file(f"{number}.py") for number in range(5)]
    found = batch(files, 3)
    assert found is not None
    assert [each.path for each in found.files] == ["0.py", "1.py", "2.py"]
    assert batch([], 3) is None
    assert batch(files, 3, texts=lambda files: set()) is None


def test_files_without_text_are_passed_over_however_many_there_are() -> None:
    files = [*(file(f"a{number:03}.bin", f"{number}") for number in range(450)), file("z.py")]
    asked: list[int] = []

    def texts(some: Sequence[TreeFile]) -> Collection[str]:
        asked.append(len(some))
        return {each.path for each in some if each.path.endswith(".py")}

    assert batch(files, 10, texts=texts) == Batch("errors", [file("z.py")])
    assert max(asked) <= 200


def test_what_a_scanner_left_out_comes_last_in_half_the_company_each_time_and_is_given_up_in_the_end() -> None:
    files = [file(f"{number}.py") for number in range(8)]
    sizes: list[int] = []
    batches: list[Given] = []
    for _ in range(RETRIES + 1):
        found = batch(files, 8, *batches)
        assert found is not None
        sizes.append(len(found.files))
        batches += [given("failed", *(each.path for each in files))]
    assert sizes == [8, 4, 2, 1]
    assert batch(files, 8, *batches) is None
    fresh = [*files, file("new.py")]
    assert batch(fresh, 8, *batches[:1]) == Batch("errors", [file("new.py")])


def test_what_was_given_up_is_due_again_with_another_content() -> None:
    batches = [given("idle", "a.py")] * (RETRIES + 1)
    assert due([file("a.py")], *batches) == []
    assert due([file("a.py", "two")], *batches) == [("a.py", "errors", 0)]
    assert due([file("a.py")], *batches, concepts=["races"]) == [("a.py", "races", 0)]


def test_what_was_cancelled_counts_for_nothing_and_what_was_lost_counts_apart() -> None:
    assert due([file("a.py")], *[given("cancelled", "a.py")] * 20) == [("a.py", "errors", 0)]
    assert due([file("a.py")], *[given("lost", "a.py")] * MAX_LOST) == [("a.py", "errors", 0)]
    assert due([file("a.py")], *[given("lost", "a.py")] * (MAX_LOST + 1)) == []


def test_a_file_that_has_its_old_content_again_was_not_tried_in_vain_when_it_was_recorded() -> None:
    seen = {("a.py", "errors"): Seen("two", True, 200)}
    batches = [given("succeeded", "a.py")] * 9
    assert due([file("a.py")], *batches, seen=seen) == [("a.py", "errors", 0)]
    late = [given("idle", "a.py", made_ms=300)] * 2
    assert due([file("a.py")], *batches, *late, seen=seen) == [("a.py", "errors", 2)]


def test_nothing_tried_is_nothing_counted() -> None:
    assert tried_of([]) == Tried()

"""A path says what a file is, and that decides which of its lines count."""

import pytest

from rookery.domains.tracker.diff import parse_diff

GOOD = "diff --git a/src/x.py b/src/x.py\n--- a/src/x.py\n+++ b/src/x.py\n@@ -1,3 +1,4 @@\n a\n-b\n+c\n+d\n e\n"


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("tests/x.py", "test"),
        ("src/__tests__/Button.tsx", "test"),
        ("src/test_x.py", "test"),
        ("conftest.py", "test"),
        ("app/tests.py", "test"),
        ("pkg/x_test.go", "test"),
        ("web/x.spec.ts", "test"),
        ("web/x.test.tsx", "test"),
        ("LoginTest.java", "test"),
        ("src/latest.py", "source"),
        ("src/contest.py", "source"),
        ("attestation/x.rs", "source"),
        ("package-lock.json", "generated"),
        ("web/yarn.lock", "generated"),
        ("Cargo.lock", "generated"),
        ("go.sum", "generated"),
        ("web/app.min.js", "generated"),
        ("api/x_pb2.py", "generated"),
        ("api/x.pb.go", "generated"),
        ("src/__generated__/schema.ts", "generated"),
        ("vendor/lib/x.go", "source"),
        ("dist/x.js", "source"),
        ("README.md", "prose"),
        ("docs/guide.rst", "prose"),
        ("LICENSE", "prose"),
        ("package.json", "source"),
        ("Dockerfile", "source"),
        ("unknown.zig", "source"),
    ],
)
def test_files_are_told_apart_by_their_paths(path: str, kind: str) -> None:
    stats = parse_diff(GOOD.replace("src/x.py", path))
    (file,) = stats.files
    assert (file.test, file.generated, file.source) == (kind == "test", kind == "generated", kind == "source")
    assert stats.changed_lines == (0 if kind == "generated" else 3)
    assert stats.source_lines == (3 if kind == "source" else 0)
    assert stats.source_without_tests == (kind == "source")


def test_a_test_beside_the_code_is_enough_and_binary_files_are_no_code() -> None:
    image = "diff --git a/x.png b/x.png\nindex 1..2 100644\nBinary files a/x.png and b/x.png differ\n"
    assert parse_diff(image).source_without_tests is False
    both = parse_diff(GOOD + image + GOOD.replace("src/x.py", "tests/test_x.py"))
    assert (both.source_without_tests, both.source_lines, both.changed_lines) == (False, 3, 6)

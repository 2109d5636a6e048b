"""What kind of file a path names: a test, something generated, prose, or code."""

import re

_TEST_FOLDERS = {"test", "tests", "__tests__", "spec", "specs", "e2e", "testdata"}
_TEST_NAME = re.compile(
    r"test_.*|conftest\.py|(?:.*[._-])?(?:test|tests|spec)\.[^.]+|.*(?:Test|Tests|TestCase|Spec)\.[a-z]+", re.DOTALL
)

_LOCK_FILES = {
    "bun.lock",
    "bun.lockb",
    "cargo.lock",
    "composer.lock",
    "deno.lock",
    "flake.lock",
    "gemfile.lock",
    "go.sum",
    "go.work.sum",
    "gradle.lockfile",
    "mix.lock",
    "npm-shrinkwrap.json",
    "package-lock.json",
    "package.resolved",
    "packages.lock.json",
    "pdm.lock",
    "pipfile.lock",
    "pnpm-lock.yaml",
    "podfile.lock",
    "poetry.lock",
    "pubspec.lock",
    "uv.lock",
    "yarn.lock",
}
_GENERATED_NAME = re.compile(
    r".*(?:\.min\.(?:js|css)|\.(?:js|css)\.map|_pb2(?:_grpc)?\.pyi?|\.pb(?:\.gw)?\.(?:go|cc|h)|\.g\.dart|\.freezed\.dart"
    r"|\.generated\.[^.]+|\.snap)",
    re.DOTALL,
)
# Folders such as vendor/ and dist/ are left out on purpose: what is edited there by hand would count for nothing.
_GENERATED_FOLDER = "__generated__"

_PROSE = (".md", ".mdx", ".markdown", ".rst", ".txt", ".adoc", ".org", ".tex", ".po", ".pot", ".svg", ".csv", ".tsv")
_PROSE_NAMES = {"license", "licence", "notice", "authors", "contributors", "copying", "changelog", "codeowners"}


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def is_test(path: str) -> bool:
    """By its folder (`tests/`, `__tests__/`) or its name (`test_x.py`, `x_test.go`, `x.spec.ts`, `XTest.java`)."""
    folders = path.split("/")[:-1]
    return any(folder.lower() in _TEST_FOLDERS for folder in folders) or bool(_TEST_NAME.fullmatch(_name(path)))


def is_generated(path: str) -> bool:
    """A lock file, or what a tool writes: bundles, source maps, protocol stubs, snapshots."""
    name = _name(path).lower()
    return name in _LOCK_FILES or bool(_GENERATED_NAME.fullmatch(name)) or _GENERATED_FOLDER in path.split("/")[:-1]


def is_source(path: str) -> bool:
    """Anything but prose. What is unknown counts as code, so that nothing passes as harmless by its ending."""
    name = _name(path).lower()
    return name not in _PROSE_NAMES and not name.endswith(_PROSE)

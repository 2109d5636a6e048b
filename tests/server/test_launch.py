"""What the flags mean where the client was started."""

import pytest

from rookery.core.errors import ConfigurationError
from rookery.core.registry import Registry
from rookery.server.launch import absolute, binding_from, database_url, working_folder

REGISTRY = Registry()


@pytest.mark.parametrize("flag", ["worktree_path", "tool_scope_file", "symphony_dir"])
def test_a_relative_path_is_refused_when_the_clients_folder_is_gone(flag: str) -> None:
    with pytest.raises(ConfigurationError, match="here"):
        binding_from({flag: "here"}, REGISTRY, None)
    with pytest.raises(ConfigurationError, match="mine"):
        database_url("mine.db", None)


def test_paths_are_absolute_whatever_the_servers_own_folder_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    bound = binding_from({"worktree_path": "../tree", "symphony_dir": "~/flows"}, REGISTRY, "/srv/nest")
    assert (bound.worktree, bound.symphony_dir, bound.cwd) == ("/srv/tree", "/home/ada/flows", "/srv/nest")
    assert binding_from({"worktree_path": "/srv/tree"}, REGISTRY, None).worktree == "/srv/tree"
    assert binding_from({}, REGISTRY, None).cwd is None
    assert database_url("/srv/mine.db", None) == "sqlite:////srv/mine.db"
    assert absolute("a/./b", "/srv") == "/srv/a/b"


def test_a_folder_that_is_gone_is_none(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path_factory.mktemp("gone")
    monkeypatch.chdir(folder)
    assert working_folder() == str(folder)
    folder.rmdir()
    assert working_folder() is None

"""Folders that programs have filled are removed whole, and nothing else with them."""

from pathlib import Path

from rookery.files.folders import remove_folder


def test_what_a_link_leads_to_stays(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path / "kept")
    remove_folder(str(tmp_path / "link"))
    (tmp_path / "gone").mkdir()
    (tmp_path / "gone" / "link").symlink_to(tmp_path / "kept")
    remove_folder(str(tmp_path / "gone"))
    assert [each.name for each in tmp_path.iterdir()] == ["kept"]
    assert (tmp_path / "kept" / "file").exists()


def test_what_cannot_be_written_goes_as_well(tmp_path: Path) -> None:
    shut = tmp_path / "gone" / "cache" / "shut"
    shut.mkdir(parents=True)
    (shut / "file").touch()
    shut.chmod(0o500)
    shut.parent.chmod(0o500)
    remove_folder(str(tmp_path / "gone"))
    assert list(tmp_path.iterdir()) == []


def test_what_is_not_there_is_no_trouble(tmp_path: Path) -> None:
    remove_folder(str(tmp_path / "nothing"))
    assert list(tmp_path.iterdir()) == []

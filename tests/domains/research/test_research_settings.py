"""The settings of the research tools: what stops the start, and what is never told."""

from pathlib import Path

import pytest

from tests.settings_loading import Load, fault, loader

KEY = "BSA-secret"


@pytest.fixture
def load(tmp_path: Path) -> Load:
    return loader(tmp_path)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ROOKERY_SEARCH_URL", "http://brave.example"),
        ("ROOKERY_SEARCH_URL", "https://u:p@brave.example"),
        ("ROOKERY_SEARCH_URL", "https://brave.example/res?key=1"),
        ("ROOKERY_SEARCH_ENGINE", "../brave"),
        ("ROOKERY_SEARCH_ENGINE", "os.path"),
        ("ROOKERY_SEARCH_TIMEOUT_S", "0"),
        ("ROOKERY_SEARCH_TIMEOUT_S", "3600"),
        ("ROOKERY_SEARCH_SUMMARY", "perhaps"),
    ],
)
def test_what_cannot_be_is_refused_at_the_start(load: Load, name: str, value: str) -> None:
    assert name in fault(load, "", {name: value})


@pytest.mark.parametrize("end", ["\n", " x", "é", "\r\nx-evil: 1"])
def test_a_key_that_no_header_can_carry_is_refused_and_not_repeated(load: Load, end: str) -> None:
    said = fault(load, "", {"BRAVE_SEARCH_API_KEY": f"{KEY}{end}"})
    assert said == "BRAVE_SEARCH_API_KEY cannot be a secret of this kind"


def test_the_key_is_shown_nowhere(load: Load) -> None:
    settings = load('[search]\nurl = "http://127.0.0.1:8080/res/"\n', {"BRAVE_SEARCH_API_KEY": KEY})
    assert (settings.search_api_key, settings.search_url) == (KEY, "http://127.0.0.1:8080/res")
    assert KEY not in repr(settings)
    assert "search" in settings.services
    assert "search" not in load("").services

"""How the tests of settings read a home whose file has a given text."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from rookery.core.errors import ConfigurationError
from rookery.settings import Settings, load_settings

Load = Callable[..., Settings]


def loader(home: Path) -> Load:
    """Loads the settings of a home whose file has the given text."""

    def loaded(text: str | bytes = "", environ: Mapping[str, str] | None = None, **override: Any) -> Settings:
        (home / "rookery.toml").write_bytes(text if isinstance(text, bytes) else text.encode())
        return load_settings(str(home), environ or {}, **override)

    return loaded


def fault(load: Load, text: str | bytes = "", environ: Mapping[str, str] | None = None, **override: Any) -> str:
    """The sentence about what is wrong. It always comes with a hint."""
    with pytest.raises(ConfigurationError) as caught:
        load(text, environ, **override)
    assert caught.value.hint
    return caught.value.message

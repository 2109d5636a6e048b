"""Settings: which source wins, and that a wrong one is named with its place before anything starts."""

import os
import re
from dataclasses import MISSING, fields
from pathlib import Path

import pytest

from rookery.core.errors import ConfigurationError
from rookery.settings import ALIASES, CHOICES, Settings, default_home, load_settings
from tests.settings_loading import Load, fault, loader

PAGE = Path(__file__).parents[1] / "docs" / "settings.md"


@pytest.fixture
def load(tmp_path: Path) -> Load:
    return loader(tmp_path)


def test_without_a_file_and_an_environment_everything_has_its_default(tmp_path: Path) -> None:
    settings = load_settings(str(tmp_path), {})
    assert settings == Settings(home=str(tmp_path))
    assert (settings.host, settings.port, settings.audit_reads) == ("127.0.0.1", 4242, "normal")


def test_the_environment_wins_over_the_file_and_the_caller_over_both(load: Load) -> None:
    file, environ = "port = 1001\n", {"ROOKERY_PORT": "1002"}
    assert load(file).port == 1001
    assert load(file, environ).port == 1002
    assert load(file, environ, port=1003).port == 1003
    assert load(file, environ, port=None).port == 1002


def test_port_is_read_too_and_our_own_name_for_it_wins(load: Load) -> None:
    assert load("port = 1001\n", {"PORT": "1002"}).port == 1002
    assert load("", {"PORT": "1002", "ROOKERY_PORT": "1003"}).port == 1003
    assert load("", {"PORT": "0"}).port == 0


def test_an_empty_variable_counts_as_unset(load: Load) -> None:
    names = [f"ROOKERY_{field.name.upper()}" for field in fields(Settings)]
    assert load("port = 1001\n", dict.fromkeys([*names, *ALIASES], "")) == load("port = 1001\n")


def test_a_table_is_a_prefix(load: Load) -> None:
    settings = load('[audit]\nreads = "full"\n[rate]\ncalls_per_minute = 90\n[log]\nlevel = "debug"\n')
    assert (settings.audit_reads, settings.rate_calls_per_minute, settings.log_level) == ("full", 90, "debug")


def test_the_environment_is_read_as_each_setting_is_meant(load: Load) -> None:
    for word, meant in {"yes": True, "ON": True, "1": True, "no": False, "False": False, "0": False}.items():
        assert load("", {"ROOKERY_PLUGINS": word}).plugins is meant
    assert load("", {"ROOKERY_RATE_CALLS_PER_MINUTE": "90"}).rate_calls_per_minute == 90
    assert load("", {"ROOKERY_HOST": "::1"}).host == "::1"


@pytest.mark.parametrize(
    ("text", "key"),
    [("prot = 1", "prot"), ("[audit]\nwrites = 1", "audit_writes"), ("[a.b]\nc = 1", "a_b"), ('home = "/srv"', "home")],
)
def test_a_setting_that_does_not_exist_is_named_with_its_file(load: Load, tmp_path: Path, text: str, key: str) -> None:
    assert fault(load, text) == f"{tmp_path / 'rookery.toml'}: there is no setting {key}"


WRONG = {
    "port": ['"high"', '""', "true", "1.5", "[1]", "1979-05-27", "-1", "65536"],
    "host": ["5", '""', "[]"],
    "database": ["true", "5"],
    "plugins": ['"maybe"', "2", "[]"],
    "audit_reads": ['"never"', "true"],
    "log_level": ['"loud"', "[]"],
    "rate_calls_per_minute": ["-1", '"many"'],
    "max_line_bytes": ["0", "-1", "1.0"],
    "public_url": ["5", '"rookery.example"', '"ftp://h"', '"https://"', '"https://h/?a=1"', '"https://h/#a"'],
    "http_mcp": ['"maybe"', "1"],
    "http_path": ['""', '"mcp"', '"/"', '"/mcp/"', '"//mcp"', '"/a b"', '"/mcp?x=1"', '"/{id}"', '"/../mcp"', "5"]
    + [f'"{path}"' for path in ("/healthz", "/readyz", "/metrics", "/.well-known", "/.well-known/mcp", "/é")],
    "http_sessions": ['"sticky"', "true"],
    "http_answers": ['"xml"', "true"],
    "http_session_idle_s": ["0", "-1", '"long"', "inf", "nan", "true"],
    "http_max_sessions": ["0", "1.5"],
    "http_max_body_bytes": ["0", "1.5", '"4MB"'],
    "http_origins": [
        *('"example.org"', '["https://a.example/path"]', '"https://a.example/"', '"null"', "[5]", "5", '[""]'),
        *('"https://a b"', '"https://u@a.example"', '"https://a.example?x"', '"https://a.example:99999"'),
    ],
    "http_hosts": ['"https://a.example"', '"a.example/b"', '["a b"]', "[5]", '"*"', '"[::1"'],
    "outgoing_allow": ['"http://a.example"', '"10.0.0.0/99"', '["a b"]', "[5]", '"*"', '"fe80::/200"'],
    "credits_hard_stop": ['"maybe"', "1"],
    "credits_per_turn": ["-1", "1.5", "1000001", '"free"'],
    "auth_mode": ['"open"', '""', "true", '"NONE"'],
    "auth_jwks_uri": ['"http://keys.example"', '"keys"', "5", '"file:///etc/passwd"', '"https://u:p@h/keys"'],
    "auth_jwks_cooldown_s": ["0", "-5", '"often"'],
    "auth_jwks_timeout_s": ["0", "61"],
    "auth_resource": ['"rookery"', '"https://h/#x"', '"https://h/ x"'],
    "auth_tenant": ['""', "5"],
    "auth_tenant_map": ['{a = ["b", "c"]}', "{a = []}", '"a"', "[]"],
    "oidc_issuer": ['"http://issuer.example"', '"issuer"', "5", '"https://u:p@h"', '"https://h/#x"'],
    "oidc_people": ['{a = ["b", "c"]}', "{a = []}", '"a"'],
    "auth_scope_checks": ['"maybe"', "0"],
    "auth_scope_map": ['"admin"', '"=*"', '"a=b;a=c"', "{admin = 5}", "{admin = [5]}", '["admin"]'],
}


@pytest.mark.parametrize(("key", "value"), [(key, value) for key, values in WRONG.items() for value in values])
def test_a_wrong_value_in_the_file_is_named_with_its_place(load: Load, tmp_path: Path, key: str, value: str) -> None:
    assert fault(load, f"{key} = {value}\n").startswith(f"{tmp_path / 'rookery.toml'}: {key} cannot be ")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PORT", "high"),
        ("PORT", "65536"),
        ("ROOKERY_PORT", "-1"),
        ("ROOKERY_PLUGINS", "maybe"),
        ("ROOKERY_AUDIT_READS", "never"),
        ("ROOKERY_LOG_LEVEL", "loud"),
        ("ROOKERY_MAX_LINE_BYTES", "0"),
    ],
)
def test_a_wrong_variable_is_named(load: Load, name: str, value: str) -> None:
    assert fault(load, "", {name: value}) == f"{name} cannot be {value!r}"


def test_lists_and_tables_come_from_the_file_or_as_text(load: Load) -> None:
    file = 'http_hosts = ["A.example", "b.example:8080"]\n[auth.scope_map]\nadmin = ["*"]\nops = "a:b, c:*"\n'
    settings = load(file)
    assert settings.http_hosts == ("a.example", "b.example:8080")
    assert settings.auth_scope_map == (("admin", ("*",)), ("ops", ("a:b", "c:*")))
    environ = {"ROOKERY_HTTP_HOSTS": " A.example ,, b.example:8080,", "ROOKERY_AUTH_SCOPE_MAP": "ops=a:b, c:*; admin=*"}
    assert load("", environ) == settings
    assert load('[auth.tenant_map]\n8f1c = "default"\n').auth_tenant_map == (("8f1c", ("default",)),)


def test_origins_are_read_as_browsers_send_them(load: Load) -> None:
    written = "https://A.example:443,http://b.example:80,http://c.example:8080,http://[::1]:3000,app://obsidian.md"
    assert load("", {"MCP_ALLOWED_ORIGINS": written}).http_origins == (
        "https://a.example",
        "http://b.example",
        "http://c.example:8080",
        "http://[::1]:3000",
        "app://obsidian.md",
    )


def test_one_setting_in_two_places_of_the_file_is_refused(load: Load) -> None:
    assert fault(load, 'auth_mode = "none"\n[auth]\nmode = "jwt"\n').endswith("auth_mode is set twice")


def test_what_the_command_line_says_is_checked_as_well(load: Load) -> None:
    # An empty address would open the door to every network that the machine is in.
    assert fault(load, host="") == "host cannot be ''"
    assert fault(load, port=65536) == "port cannot be 65536"


def test_a_choice_is_answered_with_the_choices(load: Load) -> None:
    for key, choices in CHOICES.items():
        with pytest.raises(ConfigurationError) as caught:
            load(f'{key} = "other"\n')
        assert all(choice in (caught.value.hint or "") for choice in choices)


@pytest.mark.parametrize(
    "text",
    ["port = ", "port = 1\nport = 2", b"\xff\xfe", b"port = 1 # \xe9", "a = " + "[" * 5000, "port = " + "9" * 5000],
)
def test_a_broken_file_is_named_and_nothing_starts(load: Load, tmp_path: Path, text: str | bytes) -> None:
    assert fault(load, text).startswith(f"{tmp_path / 'rookery.toml'} cannot be read: ")


def test_a_file_that_cannot_be_read_is_not_taken_for_an_absent_one(tmp_path: Path) -> None:
    (tmp_path / "rookery.toml").mkdir()
    with pytest.raises(ConfigurationError, match=r"rookery\.toml cannot be read"):
        load_settings(str(tmp_path), {})


def test_the_home_is_absolute_and_comes_from_the_caller_or_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert load_settings("here", {"ROOKERY_HOME": "/elsewhere"}).home == str(tmp_path / "here")
    assert load_settings(None, {"ROOKERY_HOME": "there"}).home == str(tmp_path / "there")
    assert default_home({"ROOKERY_HOME": ""}) == default_home({}) == os.path.expanduser("~/.rookery")


def test_data_logs_and_backups_are_in_the_home_unless_the_database_is_elsewhere(load: Load, tmp_path: Path) -> None:
    settings = load()
    assert settings.database_url == f"sqlite:///{tmp_path / 'rookery.db'}"
    assert (settings.logs, settings.backups) == (str(tmp_path / "logs"), str(tmp_path / "backups"))
    assert load('database = "postgresql://ada@db/rookery"\n').database_url == "postgresql://ada@db/rookery"


def rows_of_the_page() -> dict[str, tuple[str, str]]:
    """The variables and the default that docs/settings.md tells of each setting."""
    told: dict[str, tuple[str, str]] = {}
    for name, variables, default, *_ in re.findall(r"^\|(.*?)\|(.*?)\|(.*?)\|(.*)\|$", PAGE.read_text(), re.MULTILINE):
        key = name.strip(" `").replace("[", "").replace("] ", "_")
        told[key or "home"] = (variables, default.strip(" `"))
    return {key: told[key] for key in told if key not in ("rookery.toml", "---")}


def test_the_page_lists_every_setting_with_its_variable_and_default() -> None:
    told = rows_of_the_page()
    assert set(told) == {field.name for field in fields(Settings)}
    for field in fields(Settings):
        variables, default = told[field.name]
        assert f"`ROOKERY_{field.name.upper()}`" in variables
        if field.default not in (MISSING, "", ()):
            assert default == str(field.default).lower()


def test_the_page_names_every_other_name_of_a_setting_in_the_order_in_which_they_win() -> None:
    for key, (variables, _) in rows_of_the_page().items():
        others = [name for name in re.findall(r"`(\w+)`", variables) if name != f"ROOKERY_{key.upper()}"]
        assert others == [name for name, (meant, *_) in ALIASES.items() if meant == key], key

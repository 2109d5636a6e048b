"""Addresses of resources: what a template matches, and what never gets through one."""

import time

import pytest

from rookery.core.uri import MAX_URI, Template


@pytest.mark.parametrize(
    ("template", "uri", "values"),
    [
        ("echo://{message}", "echo://hello", {"message": "hello"}),
        ("echo://{message}", "echo://a%20b%2Fc", {"message": "a b/c"}),
        ("echo://{message}", "echo://what?#is", {"message": "what?#is"}),
        ("echo://{message}", "echo://%252e%252e", {"message": "%2e%2e"}),
        ("echo://{message}", "echo://a..b", {"message": "a..b"}),
        ("echo://{message}", "echo://.", {"message": "."}),
        ("echo://{message}", "echo://%F0%9F%90%A6", {"message": "🐦"}),
        ("files:///{+path}", "files:///a/b/c.txt", {"path": "a/b/c.txt"}),
        ("test://template/{id}/data", "test://template/7/data", {"id": "7"}),
        ("a://{one}/{two}", "a://x/y", {"one": "x", "two": "y"}),
        ("a://v1.0/{id}", "a://v1.0/7", {"id": "7"}),
        ("rookery://server", "rookery://server", {}),
    ],
)
def test_a_template_gives_each_variable_its_value(template: str, uri: str, values: dict[str, str]) -> None:
    assert Template(template).match(uri) == values


@pytest.mark.parametrize(
    ("template", "uri"),
    [
        ("echo://{message}", "echo://"),
        ("echo://{message}", "echo://a/b"),
        ("echo://{message}", "Echo://a"),
        ("echo://{message}", "xecho://a"),
        ("a://v1.0/{id}", "a://v1x0/7"),
        ("test://template/{id}/data", "test://template//data"),
        ("test://template/{id}/data", "test://template/7/data/more"),
        ("rookery://server", "rookery://server/"),
    ],
)
def test_what_does_not_fit_does_not_match(template: str, uri: str) -> None:
    assert Template(template).match(uri) is None


TRICKS = [
    "..",
    "../etc/passwd",
    "a/../../etc",
    "a/..",
    "%2e%2e",
    "%2E%2E/etc",
    "..%2Fetc",
    "a%2F..%2Fb",
    "%2Fetc",
    "/etc",
    "a\\b",
    "a%5Cb",
    "..%5c",
    "a%00b",
    "a\0b",
    "%ff",
    "%c3%28",
    "a\nb/..",
]


@pytest.mark.parametrize("trick", TRICKS)
@pytest.mark.parametrize("template", ["files:///{+path}", "echo://{message}"])
def test_a_path_that_leads_elsewhere_matches_nothing(template: str, trick: str) -> None:
    uri = template.partition("{")[0] + trick
    assert Template(template).match(uri) is None


def test_an_address_has_a_longest_length() -> None:
    template = Template("echo://{message}")
    assert template.match("echo://" + "x" * (MAX_URI - 7)) is not None
    assert template.match("echo://" + "x" * (MAX_URI - 6)) is None


@pytest.mark.parametrize(
    "text",
    [
        "no scheme",
        "{scheme}://x",
        "echo://{}",
        "echo://{Message}",
        "echo://{a}{b}",
        "echo://{a}-{b}",
        "echo://{a}/{a}",
        "echo://{+rest}/more",
        "echo://{?query}",
        "echo://{a*}",
        "echo://}",
        "echo://" + "x" * MAX_URI,
    ],
)
def test_a_template_that_could_be_misread_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"echo|scheme"):
        Template(text)


def test_what_is_expanded_is_matched_again() -> None:
    for text, values in (
        ("a://{one}/{two}", {"one": "x/y z?", "two": "ü%"}),
        ("files:///{+path}", {"path": "a b/c"}),
    ):
        template = Template(text)
        assert template.match(template.expand(values)) == values


def test_the_more_particular_of_two_templates_comes_first() -> None:
    ordered = ["a://{x}/longer", "a://{x}/b", "a://{+rest}"]
    assert [each.text for each in sorted(map(Template, reversed(ordered)), key=lambda each: each.order)] == ordered


def test_matching_takes_no_longer_for_an_evil_address() -> None:
    template = Template("a://{one}/x-{two}/{three}-y/{+rest}")
    started = time.perf_counter()
    for evil in ("a://" + "-" * 2000, "a://" + "/" * 2000, "a://a/" + "x-" * 990 + "/", "a://" + "a/x-" * 500):
        template.match(evil)
    assert time.perf_counter() - started < 0.5

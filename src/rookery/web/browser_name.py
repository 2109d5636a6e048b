"""What a browser calls itself, in words of a person. Pure."""

import re

_BROWSERS = (
    ("Edge", r"Edg(?:A|iOS)?/"),
    ("Opera", r"OPR/"),
    ("Samsung Internet", r"SamsungBrowser/"),
    ("Firefox", r"(?:Firefox|FxiOS)/"),
    ("Chrome", r"(?:Chrome|CriOS|HeadlessChrome)/"),
    ("Safari", r"Safari/"),
)
_SYSTEMS = (
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Android", "Android"),
    ("Windows", "Windows"),
    ("macOS", "Mac OS X|Macintosh"),
    ("ChromeOS", "CrOS"),
    ("Linux", "Linux"),
)


def browser_name(agent: str) -> str:
    """`Firefox on Windows`; what is no browser of these stays as it is."""
    browser = next((name for name, pattern in _BROWSERS if re.search(pattern, agent)), "")
    system = next((name for name, pattern in _SYSTEMS if re.search(pattern, agent)), "")
    if not browser:
        return agent
    return f"{browser} on {system}" if system else browser

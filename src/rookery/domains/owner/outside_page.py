"""The pages behind a link: the question with a form, or a sentence on why there is none. No script, for any phone."""

from collections.abc import Sequence
from html import escape

from rookery.domains.owner.channel_frames import one_line, visible

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex, nofollow">
<meta name="referrer" content="no-referrer">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; font: 17px/1.5 system-ui, sans-serif; }}
body {{ max-width: 36rem; margin: 1.5rem auto; padding: 0 1rem; overflow-wrap: anywhere; }}
h1 {{ font-size: 1.2rem; }}
.text {{ white-space: pre-wrap; unicode-bidi: isolate; }}
.said {{ border-left: 3px solid #8888; padding-left: 0.8rem; }}
.more {{ opacity: 0.8; font-size: 0.9rem; }}
button, textarea {{ font: inherit; box-sizing: border-box; width: 100%; margin: 0.3rem 0; padding: 0.7rem;
  border: 1px solid #8888; border-radius: 8px; }}
button {{ text-align: left; cursor: pointer; min-height: 3rem; }}
</style>
</head>
<body>
<h1>{title}</h1>
{body}
</body>
</html>
"""


def said_page(text: str, console: str = "") -> str:
    """One sentence, and the way to the `console` if there is one."""
    return PAGE.format(title="Rookery", body=f'<p class="text">{escape(text)}</p>{_way_to(console)}')


def refusal_page(reason: str) -> str:
    """What the server refused, as a sentence."""
    return said_page(f"This did not work: {reason}.")


def question_page(
    *, title: str, question: str, context: str, options: Sequence[str], free: str, error: str = "", console: str = ""
) -> str:
    """All of the question, a button for each option and a field for other words, which `free` says the sense of."""
    parts = [f'<p class="text said" dir="auto">{_shown(question)}</p>']
    if context:
        parts.append(f'<p class="text said more" dir="auto">{_shown(context)}</p>')
    if error:
        parts.append(f'<p role="alert"><strong>{escape(error)}</strong></p>')
    parts.append('<form method="post" autocomplete="off">')
    parts += [
        f'<button name="choice" value="{number}">{number}. <bdi>{escape(one_line(option))}</bdi></button>'
        for number, option in enumerate(options, 1)
    ]
    parts.append(
        f'<label>{escape(free)}<textarea name="text" rows="3" maxlength="20000"></textarea></label>'
        '<button name="choice" value="">Send</button></form>'
    )
    parts.append(_way_to(console))
    return PAGE.format(title=escape(title), body="\n".join(parts))


def _way_to(console: str) -> str:
    """A link for whoever is signed in: there the same ask has everything around it."""
    return f'<p><a href="{escape(console)}">Open it in the console</a></p>' if console else ""


def _shown(text: str) -> str:
    return escape(visible(text))

"""Code of projects: where its symbols are defined and where they are mentioned, from an index in the database."""

from rookery.domains.code.grammars import installed

SERVICES = ("code_index",) if installed() else ()
"""The tools of this domain are hidden where no parser is installed."""

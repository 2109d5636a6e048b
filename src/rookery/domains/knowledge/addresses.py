"""Where a document can be read by address."""

from rookery.core.uri import Template

TEMPLATE = Template("knowledge://{+path}")


def address(path: str) -> str:
    """The address of the document at this path, in the project that the reader is bound to."""
    return TEMPLATE.expand({"path": path})

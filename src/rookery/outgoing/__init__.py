"""The way out: requests to other machines, which never reach this one or its own network unless the owner allows it."""

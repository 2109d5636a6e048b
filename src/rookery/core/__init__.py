"""What a tool call is. Pure code: imports the standard library and pydantic, touches no file and no socket."""

"""One folder a subject. A domain is found by its folder; its tools by `@tool` in tools.py or *_tools.py."""

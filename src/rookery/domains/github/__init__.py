"""GitHub: pull requests, issues, reviews and repositories, over its REST API. docs/github.md explains it."""

"""A database with the product's tables, SQLite and PostgreSQL."""

from tests.platform_fixtures import prepared_database_url as database_url

__all__ = ["database_url"]

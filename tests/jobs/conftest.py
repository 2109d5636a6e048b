"""Workers have a platform on a database of their own."""

from tests.platform_fixtures import prepared_database_url as database_url

__all__ = ["database_url"]

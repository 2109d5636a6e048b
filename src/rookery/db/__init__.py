"""The database: one interface, SQLite and PostgreSQL behind it, their differences in sqlite.py and postgres.py."""

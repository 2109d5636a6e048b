"""Pieces that tables and migrations of every domain are made of."""

import sqlalchemy as sa

metadata = sa.MetaData()
"""Every table of the product and its plugins. Migrations build them; a test compares the two."""


def text(name: str, *, null: bool = False, primary_key: bool = False) -> sa.Column[str]:
    """A text column; not null unless said."""
    return sa.Column(name, sa.Text, nullable=null, primary_key=primary_key)


def whole(name: str, *, null: bool = False) -> sa.Column[int]:
    """A 64-bit whole number."""
    return sa.Column(name, sa.BigInteger, nullable=null)


def flag(name: str) -> sa.Column[bool]:
    return sa.Column(name, sa.Boolean, nullable=False)


def json_text(name: str, *, null: bool = False) -> sa.Column[object]:
    """A JSON value. Python's None is SQL's NULL, not JSON's."""
    return sa.Column(name, sa.JSON(none_as_null=True), nullable=null)


def serial(name: str = "id") -> sa.Column[int]:
    """A number that the database counts up."""
    kind = sa.BigInteger().with_variant(sa.Integer, "sqlite")
    return sa.Column(name, kind, primary_key=True, autoincrement=True)


def append_only(table: str, *, may_set: tuple[str, ...] = ()) -> dict[str, list[str]]:
    """Statements, by dialect, after which rows of `table` can only be added.

    Columns of `may_set` may be filled in once, together, from NULL; only PostgreSQL needs that.
    """
    message = f"{table} is append-only"
    sqlite = [
        f"CREATE TRIGGER {table}_no_update BEFORE UPDATE ON {table} BEGIN SELECT RAISE(ABORT, '{message}'); END",
        f"CREATE TRIGGER {table}_no_delete BEFORE DELETE ON {table} BEGIN SELECT RAISE(ABORT, '{message}'); END",
    ]
    empty = " AND ".join(f"OLD.{column} IS NULL AND NEW.{column} IS NOT NULL" for column in may_set)
    names = ", ".join(f"'{column}'" for column in may_set)
    allowed = (
        f"IF TG_OP = 'UPDATE' AND {empty} AND (to_jsonb(NEW) - ARRAY[{names}]) = (to_jsonb(OLD) - ARRAY[{names}]) "
        "THEN RETURN NEW; END IF;"
        if may_set
        else ""
    )
    postgres = [
        f"CREATE FUNCTION {table}_append_only() RETURNS trigger LANGUAGE plpgsql AS "
        f"$$ BEGIN {allowed} RAISE EXCEPTION '{message}'; END $$",
        f"CREATE TRIGGER {table}_no_change BEFORE UPDATE OR DELETE ON {table} "
        f"FOR EACH ROW EXECUTE FUNCTION {table}_append_only()",
        f"CREATE TRIGGER {table}_no_truncate BEFORE TRUNCATE ON {table} "
        f"FOR EACH STATEMENT EXECUTE FUNCTION {table}_append_only()",
    ]
    return {"sqlite": sqlite, "postgresql": postgres}

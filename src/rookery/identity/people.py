"""The people of one tenant: who they are, and that an owner is always among them."""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from rookery.core.errors import Conflict
from rookery.core.ids import new_id
from rookery.db.tx import Tx
from rookery.identity.signing_in import end_sessions
from rookery.identity.store import IdentityStore, begin_change, now_ms
from rookery.identity.tables import people, sign_in_links, tokens

Row = sa.Row[Any]


class People:
    """Adds, changes and removes people. Whoever changes them takes turns, or two owners could remove each other."""

    def __init__(self, tx: Tx, tenant: str) -> None:
        self.tx = tx
        self.tenant = tenant
        self._identities = IdentityStore(tx, tenant)

    def all(self) -> Sequence[Row]:
        """Everybody, those who were there first first."""
        mine = people.c.tenant == self.tenant
        return self.tx.all(sa.select(people).where(mine).order_by(people.c.created_ms, people.c.id))

    def find(self, name_or_id: str) -> Row:
        return self._identities.person(name_or_id)

    def by_email(self, email: str) -> Row | None:
        """Whoever has this address; capitals do not count."""
        return self.tx.one(sa.select(people).where(people.c.tenant == self.tenant, people.c.email == email.lower()))

    def add(self, name: str, role: str, email: str | None) -> Row:
        begin_change(self.tx)
        self._refuse_taken(name, email)
        person, told = new_id("per"), {"name": name, "role": role, "email": email}
        self.tx.run(sa.insert(people).values(id=person, tenant=self.tenant, created_ms=now_ms(), **told))
        return self.find(person)

    def change(self, name_or_id: str, values: dict[str, Any]) -> Row:
        """Change name, role or email. The last owner stays one."""
        begin_change(self.tx)
        person = self.find(name_or_id)
        self._refuse_taken(values.get("name"), values.get("email"), but=person.id)
        if person.role == "owner" and values.get("role", "owner") != "owner":
            self._refuse_last(person)
        if values:
            self.tx.run(sa.update(people).where(people.c.id == person.id).values(**values))
        return self.find(person.id)

    def remove(self, name_or_id: str) -> Row:
        """Remove a person for good, sign them out everywhere, and end their tokens. The last owner stays."""
        begin_change(self.tx)
        person = self.find(name_or_id)
        if person.role == "owner":
            self._refuse_last(person)
        end_sessions(self.tx, self.tenant, person=person.id)
        self.tx.run(sa.delete(sign_in_links).where(sign_in_links.c.person == person.id))
        theirs = (tokens.c.tenant == self.tenant, tokens.c.holder == person.id, tokens.c.revoked_ms.is_(None))
        self.tx.run(sa.update(tokens).where(*theirs).values(revoked_ms=now_ms()))
        self.tx.run(sa.delete(people).where(people.c.id == person.id))
        return person

    def _refuse_taken(self, name: str | None, email: str | None, *, but: str = "") -> None:
        for what, column, wanted in (("name", sa.func.lower(people.c.name), name), ("email", people.c.email, email)):
            same = (people.c.tenant == self.tenant, people.c.id != but, column == (wanted or "").lower())
            if wanted and self.tx.one(sa.select(people.c.id).where(*same)) is not None:
                raise Conflict(f"{what}: somebody else has {wanted}", hint="choose another one")

    def _refuse_last(self, person: Row) -> None:
        others = (people.c.tenant == self.tenant, people.c.role == "owner", people.c.id != person.id)
        if self.tx.one(sa.select(people.c.id).where(*others)) is None:
            raise Conflict(
                f"{person.name} is the only owner, and somebody has to be", hint="make somebody else an owner first"
            )

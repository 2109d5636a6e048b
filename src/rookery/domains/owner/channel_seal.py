"""Channel configs at rest: sealed with the keyring, or without one with a key that the server keeps for itself."""

import base64
import json
from typing import Any

import sqlalchemy as sa

from rookery.core.errors import ConfigurationError
from rookery.db.server_keys import server_key_in
from rookery.db.tx import Tx
from rookery.domains.owner.notify_tables import notification_channels as channels
from rookery.sealing.key_table import current_version, prefer
from rookery.sealing.keyring import Keyring

PURPOSE = "notification-channels"
SERVER_KEY = "notification-channels"
_OTHER_KEY = (
    sa.select(channels)
    .where(channels.c.key_version.is_distinct_from(sa.bindparam("version")))
    .order_by(channels.c.id)
    .limit(sa.bindparam("batch"))
    .with_for_update()
)


class ChannelSeal:
    """Seals and opens configs. Both are for one row: a config that was moved to another does not open."""

    def __init__(self, tx: Tx, keyring: Keyring | None) -> None:
        self.tx = tx
        self.keyring = keyring

    def columns(self, tenant: str, channel_id: str, config: dict[str, str]) -> dict[str, Any]:
        """The columns of a row that has this config; of its values, nobody can read any there."""
        sealed = self._sealer().seal(PURPOSE, json.dumps(config), _about(tenant, channel_id))
        return {
            "config_keys": sorted(config),
            "config": base64.b64encode(sealed).decode(),
            "key_version": None if self.keyring is None else current_version(self.tx, self.keyring),
        }

    def config_of(self, row: sa.Row[Any]) -> dict[str, str]:
        """The config of a row. What another key sealed is a ConfigurationError."""
        opener = self._server() if row.key_version is None else self.keyring
        if opener is None:
            raise ConfigurationError(
                f"the config of the channel {row.channel_type} is sealed, and the server has no key",
                hint="start the server with the ROOKERY_MNEMONIC or the key file that sealed it",
            )
        return json.loads(opener.open(PURPOSE, base64.b64decode(row.config), _about(row.tenant, row.id)))

    def reseal(self, new: Keyring, limit: int = 100) -> int:
        """Seal up to `limit` configs with the new key and say how many. Zero: all have it."""
        version = current_version(self.tx, new)
        rows = self.tx.all(_OTHER_KEY, {"version": version, "batch": limit})
        if rows:
            prefer(self.tx, version)
        for row in rows:
            after = ChannelSeal(self.tx, new).columns(row.tenant, row.id, self.config_of(row))
            self.tx.run(sa.update(channels).where(channels.c.id == row.id).values(**after))
        return len(rows)

    def _sealer(self) -> Keyring:
        return self.keyring or self._server()

    def _server(self) -> Keyring:
        return Keyring(server_key_in(self.tx, SERVER_KEY))


def _about(tenant: str, channel_id: str) -> str:
    return f"{tenant}\0{channel_id}"

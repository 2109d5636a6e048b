"""A process that seals memories with another key until it is done or killed. Says a line for each batch."""

import sys
from contextlib import closing

from rookery.db.database import open_database
from rookery.domains.memory import rotation
from rookery.sealing.keyring import Keyring

if __name__ == "__main__":
    url, old, new, batch = sys.argv[1:]
    rotation.BATCH = int(batch)
    with closing(open_database(url)) as database:
        keys = Keyring(bytes.fromhex(old)), Keyring(bytes.fromhex(new))
        rotation.rotate(database, *keys, told=lambda number: print(number, flush=True))

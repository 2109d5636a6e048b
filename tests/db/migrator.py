"""A process that migrates when told to: `python -m tests.db.migrator URL`. Says `ready`, then what it applied."""

import json
import sys

from rookery.db.database import open_database
from rookery.db.migrate import Migration, migrate

PLAN = {
    "ledger": [
        Migration(number, f"step {number}", [f"CREATE TABLE ledger_{number} (id {{serial}}, note TEXT)"])
        for number in range(1, 6)
    ]
}

if __name__ == "__main__":
    database = open_database(sys.argv[1])
    print("ready", flush=True)
    sys.stdin.readline()
    print(json.dumps(migrate(database, PLAN, None).applied))
    database.close()

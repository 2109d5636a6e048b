"""Credits: accounts, an append-only double-entry ledger of everything that changed them, and the rates."""

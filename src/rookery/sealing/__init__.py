"""Sealing: texts that only a server with the right key can read. Keys come from a mnemonic or from a key file."""

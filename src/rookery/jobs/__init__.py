"""Work that outlives a call: deferred in the transaction that asks for it, done by a worker, finished exactly once."""

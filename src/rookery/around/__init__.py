"""What surrounds every call: the audit log, rate limits, timing, logs."""

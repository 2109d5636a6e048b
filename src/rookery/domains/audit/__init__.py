"""Reading the audit log and checking its chain."""

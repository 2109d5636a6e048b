"""Agents elsewhere: finding and asking them by the A2A protocol, and the tasks that they send here."""

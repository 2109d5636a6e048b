"""What agents remember: memories of their own by key, sealed where there is a key, and a profile's memory files."""

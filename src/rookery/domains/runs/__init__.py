"""What agents did in their runs, for those who look into it."""

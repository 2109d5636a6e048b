"""What work goes through: the states of issues, phases, runs and pull requests, and the rows that domains share."""

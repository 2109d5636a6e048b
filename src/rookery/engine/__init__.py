"""The orchestrator: turns ready issues into runs of agents, phase by phase, until a pull request is merged.

What follows from what is there is decided by pure functions (`plan`, `reconcile`); everything else reads or acts. It is
loaded like a domain, but stands above all of them.
"""

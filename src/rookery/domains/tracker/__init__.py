"""The durable record of the work: issues, findings, learnings, phase claims and verdicts, pull requests.

Tools write claims and verdicts; `advance` alone moves an issue from phase to phase.
"""

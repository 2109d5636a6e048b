"""Ratios against peers and floors, measured in one run on one machine: `python -m benchmarks`."""

"""The seven counts of a snapshot. Of every one of them less is better."""

METRICS = {
    "tsc_errors": "tsc_error_count",
    "test_failures": "test_failure_count",
    "todos": "todo_count",
    "fixmes": "fixme_count",
    "hacks": "hack_count",
    "large_files": "large_file_count",
    "outdated_deps": "outdated_dep_count",
}
"""By the name under which a trend is shown, the column of a snapshot. `tsc` stands for any type checker."""
COLUMNS = tuple(METRICS.values())
MAX_COUNT = 1_000_000_000

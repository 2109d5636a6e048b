"""Work tasks: coding work that an agent does by itself, on a branch of its own, until the project's checks pass."""

SERVICES = ("work_tasks",)

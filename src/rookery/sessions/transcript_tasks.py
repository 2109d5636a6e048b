"""The list of tasks that an agent keeps while it works, put together from its calls. Pure."""

import re
from collections.abc import Mapping
from typing import Any, cast

MOST_TASKS = 1000
_NUMBER = re.compile(r"#(\w{1,40})")


class Tasks:
    """The tasks as they stand after the calls so far: of TodoWrite, or of TaskCreate and TaskUpdate."""

    def __init__(self) -> None:
        self._tasks: dict[str, dict[str, str]] = {}
        self._awaited: dict[str, str] = {}

    @property
    def listed(self) -> list[dict[str, str]]:
        """Each with id, text and status, in their order."""
        return list(self._tasks.values())

    def called(self, call_id: str, tool: str, given: Mapping[str, Any]) -> None:
        """A tool was called."""
        if tool == "TodoWrite":
            self._replace(given.get("todos"))
        elif tool == "TaskCreate" and len(self._tasks) < MOST_TASKS:
            number = str(len(self._tasks) + 1)
            self._put(number, given.get("subject") or given.get("description"), "pending")
            self._awaited[call_id] = number
        elif tool == "TaskUpdate":
            self._update(str(given.get("taskId")), given)

    def returned(self, call_id: str, text: str, structured: Any) -> None:
        """It has answered. Only now a new task's number is known."""
        number = self._awaited.pop(call_id, None)
        if number is None:
            return
        told = _number_in(text, structured) or number
        if told == number or told in self._tasks or number not in self._tasks:
            return
        renamed = {**self._tasks[number], "id": told}
        self._tasks = {
            key if key != number else told: task if key != number else renamed for key, task in self._tasks.items()
        }

    def _replace(self, todos: Any) -> None:
        if not isinstance(todos, list):
            return
        self._tasks = {}
        for number, todo in enumerate(cast("list[Any]", todos)[:MOST_TASKS], 1):
            if isinstance(todo, dict):
                each = cast("dict[str, Any]", todo)
                self._put(str(number), each.get("content"), each.get("status"))

    def _update(self, number: str, given: Mapping[str, Any]) -> None:
        task = self._tasks.get(number)
        if task is None:
            return
        if given.get("status") == "deleted":
            del self._tasks[number]
        else:
            self._put(number, given.get("subject") or task["text"], given.get("status") or task["status"])

    def _put(self, number: str, text: Any, status: Any) -> None:
        self._tasks[number] = {"id": number, "text": str(text or ""), "status": str(status or "pending")}


def _number_in(text: str, structured: Any) -> str | None:
    task: Any = cast("dict[str, Any]", structured).get("task") if isinstance(structured, dict) else None
    if isinstance(task, dict) and cast("dict[str, Any]", task).get("id"):
        return str(cast("dict[str, Any]", task)["id"])
    found = _NUMBER.search(text)
    return found[1] if found else None

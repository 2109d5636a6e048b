"""The list of what an agent means to do, as Claude Code keeps it, in whichever of its ways."""

from typing import Any, cast

Json = dict[str, Any]
DELETED = "deleted"


class Tasks:
    """Each method gives the whole list if it has changed, else None."""

    def __init__(self) -> None:
        self._tasks: dict[str, Json] = {}

    def wanted(self, tool: str, given: Json) -> list[Json] | None:
        """A tool is about to be used."""
        todos: Any = given.get("todos")
        if tool != "TodoWrite" or not isinstance(todos, list):
            return None
        listed = cast("list[Json]", todos)
        self._tasks = {
            str(number): _task(str(number), todo.get("content"), todo.get("status"))
            for number, todo in enumerate(listed, 1)
        }
        return self._all()

    def done(self, tool: str, result: object) -> list[Json] | None:
        """A tool was used, and this came of it."""
        if not isinstance(result, dict):
            return None
        told = cast(Json, result)
        if tool == "TaskCreate" and isinstance(told.get("task"), dict):
            task: Json = told["task"]
            return self._put(str(task.get("id")), task.get("subject"), "pending")
        if tool == "TaskUpdate" and isinstance(told.get("statusChange"), dict):
            return self._put(str(told.get("taskId")), None, told["statusChange"].get("to"))
        if tool == "TaskList" and isinstance(told.get("tasks"), list):
            tasks = cast("list[Json]", told["tasks"])
            kept = {key: task for key, task in self._tasks.items() if not key.isdecimal()}
            self._tasks = kept | {
                str(task.get("id")): _task(str(task.get("id")), task.get("subject"), task.get("status"))
                for task in tasks
            }
            return self._all()
        return None

    def heard(self, message: Any) -> list[Json] | None:
        """A helper of the agent has begun, goes on or has ended."""
        status = getattr(message, "status", None)
        text = getattr(message, "description", None)
        if status is None and message.task_id in self._tasks:
            return None
        return self._put(message.task_id, text, status or "in_progress")

    def _put(self, key: str, text: str | None, status: str | None) -> list[Json] | None:
        if status == DELETED:
            self._tasks.pop(key, None)
            return self._all()
        known = self._tasks.get(key, _task(key, None, None))
        self._tasks[key] = _task(key, text or known["text"], status or known["status"])
        return self._all()

    def _all(self) -> list[Json]:
        return list(self._tasks.values())


def _task(key: str, text: str | None, status: str | None) -> Json:
    return {"id": key, "text": text or "", "status": status or "pending"}

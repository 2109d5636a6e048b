"""The agent of a task is told of the project's code, as far as it may see that itself."""

import pytest

from rookery.domains.work import code_context as context
from tests.domains.work.workshop import Listening, Workshop, git

pytestmark = pytest.mark.anyio
EXPORTS = "What the project's code exports"
NAMED = "these have words of the task in their names"


def fill(workshop: Workshop) -> None:
    """Code in the project, committed."""
    files = {
        "src/login.py": "def check_password(name):\n    return name\n\n\nclass LoginPage:\n    def show(self): ...\n",
        "tools/run.py": "def run(): ...\n",
        "tests/test_login.py": "def test_it(): ...\n",
    }
    for name, text in files.items():
        path = workshop.repository / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    git(workshop.repository, "add", "-A")
    git(workshop.repository, "commit", "-q", "-m", "code")


async def told(workshop: Workshop, *script: str, agent: str | None = None) -> str:
    """The prompt of the task's session."""
    prompts: list[str] = []
    workshop.use(Listening(workshop, prompts))
    task = await workshop.work(*script, actor=workshop.agent(agent))
    assert task.status == "completed", task.error
    return prompts[0]


async def test_an_agent_that_may_not_look_is_told_nothing_and_works_all_the_same(workshop: Workshop) -> None:
    await workshop.open()
    fill(workshop)
    await workshop.call(
        workshop.fleet.owner, "create_agent", name="blind", permissions=["create_work_task", "get_work_task"]
    )
    prompt = await told(workshop, "mend the login", "!write a.txt a", agent="blind")
    assert EXPORTS not in prompt
    assert NAMED not in prompt


async def test_the_prompt_has_a_map_of_the_code_and_what_the_task_names(workshop: Workshop) -> None:
    await workshop.open()
    fill(workshop)
    prompt = await told(workshop, "The LoginPage must ask for a password", "!write a.txt a")
    code = prompt.partition(NAMED)[2]
    named, _, exported = code.partition(EXPORTS)
    assert "class LoginPage [5-6, 1 members] in src/login.py" in named
    assert "function check_password [1-2] in src/login.py" in named
    places = [exported.index(path) for path in ("src/login.py", "tools/run.py", "tests/test_login.py")]
    assert places == sorted(places)


async def test_a_project_without_code_has_no_map(workshop: Workshop) -> None:
    await workshop.open()
    prompt = await told(workshop, "mend the login", "!write a.txt a")
    assert EXPORTS not in prompt


async def test_code_that_is_not_read_in_time_keeps_nobody_waiting(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    await workshop.open()
    fill(workshop)
    monkeypatch.setattr(context, "LIMIT_S", 0.0)
    assert EXPORTS not in await told(workshop, "mend the login", "!write a.txt a")

"""What a run must come to, worked out the plain way: every node once, after its sources, nothing at the same time.

It shares the languages of conditions and templates with the platform, and nothing of how a run goes on.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from rookery.domains.workflows import condition, template
from rookery.domains.workflows.graph import Graph, Node

Json = dict[str, Any]
Ended = tuple[str, Json | None, str | None]
Outside = Callable[[Node, Json], Ended]
"""What carrying out a node comes to: completed with an output, or failed with an error."""

TEXTS = {"agent_session": "prompt", "work_task": "description", "transform": "template"}


@dataclass(frozen=True)
class Settled:
    """The end of one node."""

    status: str
    input: Json | None = None
    output: Json | None = None
    error: str | None = None
    because_of_failure: bool = False


@dataclass
class Interpreter:
    """One run from its start to its end."""

    graph: Graph
    run_input: Json
    outside: Outside
    ends: dict[str, Settled] = field(default_factory=dict[str, Settled])

    def run(self) -> tuple[str, Json, str | None]:
        """How the run ends: status, output, error."""
        output: Json = {}
        error: str | None = None
        for node in self.order():
            end = self.settle(node)
            if end.status == "completed":
                output.update(end.output or {})
            if end.status == "failed" and error is None:
                error = f'node "{node.label}" failed: {end.error}'
        return ("failed" if error else "completed"), output, error

    def order(self) -> list[Node]:
        placed: list[Node] = []
        while len(placed) < len(self.graph.nodes):
            names = {node.id for node in placed}
            placed.append(
                next(
                    node
                    for node in self.graph.nodes
                    if node.id not in names
                    and all(edge.source in names for edge in self.graph.edges if edge.target == node.id)
                )
            )
        return placed

    def settle(self, node: Node) -> Settled:
        if node.id not in self.ends:
            self.ends[node.id] = self._settle(node)
        return self.ends[node.id]

    def _settle(self, node: Node) -> Settled:
        ways = [(edge, self.graph.node(edge.source)) for edge in self.graph.edges if edge.target == node.id]
        sources = [(edge, source, self.settle(source)) for edge, source in ways]
        lost = any(end.status == "failed" or end.because_of_failure for _, _, end in sources)
        taken = [
            end
            for edge, source, end in sources
            if end.status == "completed"
            and (
                source.type != "condition"
                or edge.condition is None
                or (end.output == {"conditionResult": edge.condition == "true"})
            )
        ]
        if node.type != "start" and (not taken or (node.type == "join" and lost)):
            return Settled("skipped", because_of_failure=lost)
        given = self._input([end for _, _, end in sources if end.status == "completed"])
        status, output, error = self._carry_out(node, given)
        return Settled(status, given, output, error)

    def _input(self, done: list[Settled]) -> Json:
        given = dict(self.run_input)
        for end in done:
            given.update({key: value for key, value in (end.input or {}).items() if key != "prev"})
        for end in done:
            given.update(end.output or {})
            given["prev"] = end.output
        return given

    def _carry_out(self, node: Node, given: Json) -> Ended:
        text = ""
        if node.type in TEXTS:
            try:
                text = template.render(node.config.get(TEXTS[node.type], "{{prev}}"), given)
            except template.MissingPath as missing:
                return "failed", None, str(missing)
        passed = {key: value for key, value in given.items() if key != "prev"}
        if node.type == "condition":
            answer = condition.parse(node.config.get("expression", "true")).holds(given)
            return "completed", {"conditionResult": answer}, None
        if node.type == "transform":
            return "completed", {**passed, "transformed": text}, None
        if node.type == "end":
            return "completed", {**passed, "completed": True}, None
        if node.type in ("start", "parallel", "join"):
            return "completed", passed, None
        return self.outside(node, given)

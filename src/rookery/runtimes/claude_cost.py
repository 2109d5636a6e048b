"""What a turn of Claude Code has cost, by the line with which it ends."""

from rookery.runtimes.command_reading import Json, dollars, table


def own_cost(result: Json) -> float | None:
    """What was spent since the result before; None if it is not said.

    The total of a session that is resumed has what it cost before in it.
    """
    since = result.get("model_usage_since_last_result")
    if not isinstance(since, dict):
        return None
    return sum(dollars(table(used).get("costUSD")) for used in table(since).values())

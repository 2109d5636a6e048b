from tests.domains.owner.reception import Reception
from tests.statuses import statuses_of


async def test_a_question_is_asked_with_one_status(reception: Reception) -> None:
    heard = statuses_of(reception.fleet)
    row = await reception.opened()
    assert heard["ask_owner"] == [f"waiting for the owner; ask_id: {row.id}"]

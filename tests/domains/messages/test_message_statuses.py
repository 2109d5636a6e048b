from tests.domains.messages.post_office import PostOffice
from tests.statuses import statuses_of


async def test_a_message_is_sent_with_two_statuses(office: PostOffice) -> None:
    heard = statuses_of(office.fleet)
    await office.send("bob", "!say four")
    assert heard["send_message"] == ["querying bob", "reply of bob received"]

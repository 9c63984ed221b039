"""What a keeper says about a connection that it cannot open."""

import pytest
from dynamo_shared.bus.errors import BusUnavailableError
from dynamo_shared.bus.nats.keeper import Keeper
from dynamo_shared.bus.nats.options import NatsOptions
from dynamo_shared.bus.nats.session import NatsSession

from tests.building.waiting import until


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (BusUnavailableError("connection refused"), "NATS is unavailable: connection refused"),
        (KeyError("hush"), "NATS is unavailable: an attempt to connect ended with an unexpected KeyError: see the log"),
    ],
)
async def test_an_attempt_that_failed_is_reported(error: Exception, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """After an unexpected error, the health of a service said only that it was not connected yet."""

    async def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(NatsSession, "open", fail)
    keeper = Keeper(NatsOptions(), counted=False)
    before = keeper.trouble
    keeper.start()
    await until(lambda: keeper.trouble != before, within=10)
    with pytest.raises(BusUnavailableError) as caught:
        keeper.session()
    assert str(caught.value) == says
    await keeper.close()

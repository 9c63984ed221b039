"""Deliveries of a durable consumer, and the answers to them."""

from typing import Self

from nats.aio.msg import Msg

from dynamo_shared.bus.nats import management
from dynamo_shared.bus.nats.keeper import Keeper
from dynamo_shared.bus.nats.pull import NANOSECONDS, DeliveryMetadata, Puller, metadata_of
from dynamo_shared.bus.nats.resuming import Declare, Resuming
from dynamo_shared.bus.nats.session import TRANSLATED, translate
from dynamo_shared.bus.protocol import ACK_TIMEOUT, ConsumerSpec, Message


class NatsDelivery:
    """One delivery; see `Delivery` of the protocol.

    An answer is a message to the delivery's reply subject, so it may take another session than the delivery came by.
    """

    def __init__(self, keeper: Keeper, raw: Msg, metadata: DeliveryMetadata) -> None:
        self._keeper = keeper
        self._reply = raw.reply
        self.message = Message(raw.subject, raw.data, raw.headers or {}, metadata.stream_sequence)
        self.deliveries = metadata.deliveries

    async def ack(self) -> None:
        """Done; waits for the server's confirmation."""
        await self._answer(b"+ACK")

    async def nak(self, delay: float = 0.0) -> None:
        """Again, after so many seconds."""
        await self._answer(b"-NAK" + (b' {"delay": %d}' % int(delay * NANOSECONDS) if delay else b""))

    async def reject(self) -> None:
        """Never again."""
        await self._answer(b"+TERM")

    async def in_progress(self) -> None:
        """The ack wait begins again."""
        await self._answer(b"+WPI")

    async def _answer(self, verb: bytes) -> None:
        session = self._keeper.session()
        try:
            await session.call(session.client.request, self._reply, verb, timeout=ACK_TIMEOUT)
        except TRANSLATED as error:
            raise translate(error) from error


class NatsConsumer(Resuming[NatsDelivery]):
    """See `Consumer` of the protocol."""

    def __init__(self, keeper: Keeper, declare: Declare, spec: ConsumerSpec, prefetch: int) -> None:
        super().__init__(keeper, declare, spec.stream, f"consumer {spec.name}")
        self._spec = spec
        self._prefetch = prefetch

    def __aiter__(self) -> Self:
        return self

    async def _next(self, puller: Puller) -> NatsDelivery:
        await puller.refill()
        raw = puller.take_ready() or await puller.take()
        return NatsDelivery(self._keeper, raw, metadata_of(raw.reply))

    async def establish(self) -> None:
        """Makes the durable consumer if need be, and begins to receive on the current session."""
        session = self._keeper.session()
        name = await management.make_durable(session, self._spec)
        puller = Puller(session, self._spec.stream.name, name, self._prefetch)
        await puller.start()
        self._puller = puller

    async def _give_back(self, puller: Puller) -> None:
        while (raw := puller.take_ready()) is not None:
            try:
                await raw.nak()
            except TRANSLATED:
                # The ack wait gives it back a little later.
                break

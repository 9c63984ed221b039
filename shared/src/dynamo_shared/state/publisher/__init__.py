"""Publishing objects to STATE: fenced, pipelined, and aware of what STATE has.

The publisher remembers for each subject the sequence and the version of its last message, and publishes against that
sequence. What can happen to a publish:

1. Acknowledged: remembered.
2. Wrong sequence: someone else has published (another watcher, a forger), or the message is gone (tombstone expired,
   stream lost). Which of the two is right is not concluded from versions: `truth` is asked for the object as it is now,
   and that is published against the right sequence. So a watcher that lost its election publishes nothing outdated.
3. No answer: tried again when the bus can be reached. If it was stored after all, the message id makes the second one a
   duplicate, or (2) finds our own message there.
4. No stream: the streams are declared again, and STATE counts as lost.

What others put into STATE, or a storage that was set back, is noticed without a publish, too: see `audit`.

| module | what it has |
|---|---|
| `publisher` | what users call; puts the others together |
| `outbox` | what is to be published: for each subject one under way, one that waits |
| `ledger` | what STATE has: for each subject the last message |
| `desired` | what STATE has once the outbox is empty: what a put or a deletion is compared with |
| `sender` | publishes what the outbox has, and deals with each answer |
| `correction` | sets a subject right from `truth` |
| `audit` | checks at intervals whether STATE holds what it must |
| `stream` | whether the stream is still the one that was published to |
| `markers`, `refusals` | the ends of lists; objects that STATE does not take |
"""

from dynamo_shared.state.publisher.correction import Truth
from dynamo_shared.state.publisher.publisher import StatePublisher

__all__ = ["StatePublisher", "Truth"]

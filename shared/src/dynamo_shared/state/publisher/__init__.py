"""Publishes objects to STATE: fenced, pipelined, and with a record of what STATE has.

The publisher remembers the sequence and the version of the last message of each subject, and publishes with that
sequence as the expected one. A publish has one of these results:

1. Acknowledged: the publisher remembers it.
2. Wrong sequence: another client has published (another watcher, a forger), or the message is gone (expired tombstone,
   lost stream). Versions do not decide which message is right: the publisher asks `truth` for the current object, and
   publishes it with the right sequence. So a watcher that lost its election publishes nothing outdated.
3. No answer: the publisher tries again when the bus is available. If the message was stored after all, the message id
   makes the second one a duplicate, or (2) detects that the stored message is its own.
4. No stream: the publisher declares the streams again and considers STATE lost.

`audit` detects without a publish what other clients put into STATE, and a storage that was set back.

| module | what it has |
|---|---|
| `publisher` | the interface for users; combines the other modules |
| `outbox` | messages to publish: for each subject one under way and one waiting |
| `ledger` | what STATE has: the last message of each subject |
| `desired` | what STATE has once the outbox is empty; a put or a deletion is compared with it |
| `sender` | publishes the outbox and handles each answer |
| `correction` | corrects a subject from `truth` |
| `audit` | checks at intervals whether STATE has the expected messages |
| `stream` | whether the stream is still the one that was published to |
| `markers`, `refusals` | the ends of lists; objects that STATE does not take |
"""

from dynamo_shared.state.publisher.correction import Truth
from dynamo_shared.state.publisher.publisher import StatePublisher

__all__ = ["StatePublisher", "Truth"]

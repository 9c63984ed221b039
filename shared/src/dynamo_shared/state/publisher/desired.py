"""What STATE has of each subject once all queued messages have arrived."""

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import Resource
from dynamo_shared.state import messages
from dynamo_shared.state.publisher.ledger import Ledger
from dynamo_shared.state.publisher.outbox import Outbox
from dynamo_shared.state.versions import Version, version_of


class Desired:
    """The ledger and the outbox, read together: queued messages precede stored ones."""

    def __init__(self, ledger: Ledger, outbox: Outbox) -> None:
        self.ledger = ledger
        self.outbox = outbox

    def version(self, resource: Resource, subject: str) -> Version | None:
        """Version of the newest message; None if STATE will have no message."""
        if (queued := self.outbox.newest(subject)) is not None:
            return queued.version
        known = self.ledger.get(resource, subject)
        return known.version if known is not None else None

    def is_gone(self, resource: Resource, subject: str) -> bool:
        """Whether the newest message is a tombstone, or STATE will have no message."""
        if (queued := self.outbox.newest(subject)) is not None:
            return queued.deleted
        known = self.ledger.get(resource, subject)
        return known is None or known.deleted

    def has(self, resource: Resource, subject: str, obj: KubeObject) -> bool:
        """Whether an object need not be published: STATE has this version of it, or will have it."""
        version = version_of(obj)
        if (queued := self.outbox.newest(subject)) is not None:
            return not queued.deleted and queued.version[:2] == version[:2]
        known = self.ledger.get(resource, subject)
        if known is None or known.deleted or known.version[:2] != version[:2]:
            return False
        if not known.digest:
            return True
        # A message that was already there may be another object, although it has this version.
        same = known.digest == hash(messages.pack(messages.encode_object(obj))[0])
        self.ledger.set(resource.id, subject, known._replace(digest=0))
        return same

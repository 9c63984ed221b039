"""What decides which keys a service works on."""

import os
import socket

from dynamo_shared.leases import AllKeys, AlwaysLeader, Leadership, Ownership


class Leasing:
    """Decides which keys a service works on. This class is for a single replica, which does everything."""

    def ownership(self, service: str) -> Ownership:
        """The keys that this replica of a service works on."""
        del service
        return AllKeys()

    def leadership(self, service: str) -> Leadership:
        """Whether this replica of a service is the active one."""
        del service
        return AlwaysLeader()


def default_replica_id() -> str:
    """The pod's or the host's name, and the process id: a restarted container is the same replica."""
    return f"{os.environ.get('POD_NAME') or socket.gethostname()}-{os.getpid()}"

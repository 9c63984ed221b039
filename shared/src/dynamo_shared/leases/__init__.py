"""What may die with a lease: who is there, who leads, and who works on which keys. Kept in etcd.

With one replica none of it is needed: `AllKeys` owns everything and `AlwaysLeader` leads.
"""

from dynamo_shared.leases.ownership import AllKeys, AlwaysLeader, Drainer, GainListener, Leadership, Listener, Ownership

__all__ = ["AllKeys", "AlwaysLeader", "Drainer", "GainListener", "Leadership", "Listener", "Ownership"]

"""State that ends with a lease: which replicas exist, which one leads, and which keys each works on. Kept in etcd.

A single replica needs none of it: `AllKeys` owns everything and `AlwaysLeader` leads.
"""

from dynamo_shared.leases.ownership import AllKeys, AlwaysLeader, Drainer, GainListener, Leadership, Listener, Ownership

__all__ = ["AllKeys", "AlwaysLeader", "Drainer", "GainListener", "Leadership", "Listener", "Ownership"]

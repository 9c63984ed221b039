"""The definition of LeaderWorkerSet for tests, without its controller and webhook."""

from dynamo_shared.api.resources import LEADER_WORKER_SETS

from tests.building.definitions import ANYTHING, definition_of

POLICY = {
    "type": "object",
    "properties": {"subdomainPolicy": {"type": "string"}},
    "default": {"subdomainPolicy": "Shared"},
}
#: With the defaults that LeaderWorkerSet's webhook would set.
DEFINITION = definition_of(LEADER_WORKER_SETS, spec={**ANYTHING, "properties": {"networkConfig": POLICY}})

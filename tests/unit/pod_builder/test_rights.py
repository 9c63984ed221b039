"""What the pod-builder may do."""

from dynamo_pod_builder.app import READS
from dynamo_pod_builder.rights import RIGHTS


def test_what_it_writes_and_reads_from_state_it_may_ask_the_api_server_for() -> None:
    """It asks where STATE does not confirm a write: without the right it believes in it until it is started again."""
    writes = {
        each.resource for each in RIGHTS if not each.subresource and {"create", "patch", "update"} & {*each.verbs}
    }
    may_get = {each.resource for each in RIGHTS if not each.subresource and "get" in each.verbs}
    assert sorted(each.id for each in writes & {*READS} - may_get) == []

"""The rights of the pod-builder."""

from dynamo_pod_builder.app import READS
from dynamo_pod_builder.rights import RIGHTS


def test_the_pod_builder_may_get_every_resource_that_it_writes_and_reads_from_state() -> None:
    """It reads an object if STATE does not confirm a write. Without the right it trusts that write until a restart."""
    writes = {
        each.resource for each in RIGHTS if not each.subresource and {"create", "patch", "update"} & {*each.verbs}
    }
    may_get = {each.resource for each in RIGHTS if not each.subresource and "get" in each.verbs}
    assert sorted(each.id for each in writes & {*READS} - may_get) == []

"""Fields of Dynamo since 1.3 that this platform's definitions do not have, and what to do about each.

docs/moving.md has the same table.
"""

from collections.abc import Mapping

from dynamo_shared.api.rules import Location

#: The end of a field's path, without indexes and names of components -> what to do. The longest matching end counts.
LATER: dict[str, str] = {
    "experimental.componentGroups": "set replicas of each component; one scale command changes several components",
    "dynamoSidecar": "run the Dynamo runtime in main, or in an init container runtime with restartPolicy: Always",
    "gpuMemoryService.extraClientPods": "remove it: only pods of the component use the GPU memory service, as with the operator",
}
OTHERS = "this platform has no equivalent: remove it, or leave this object to the operator"


def what_to_do(field: Location, moved: Mapping[str, str]) -> str:
    """What the author should do about a field that would be dropped. `moved`: the fields that have another name here."""
    names = [each for each in field if isinstance(each, str)]
    ends = (".".join(names[start:]) for start in range(len(names)))
    later = next((LATER[end] for end in ends if end in LATER), None)
    return later or moved.get(names[-1] if names else "", OTHERS)

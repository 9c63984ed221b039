"""Names of generated objects, within the limits of the names that are derived from them later."""

import hashlib
from collections.abc import Iterable

from dynamo_shared.api.component_names import LEADERS
from dynamo_shared.api.untrusted.reading import mapping, text
from dynamo_shared.api.v1beta1.request import DynamoGraphDeploymentRequestSpec

from dynamo_profiler.profiling.results import ProfilingFailed

#: Largest total length of a graph's name and a component's name: Grove's limit, for cliques and scaling groups alike.
#: Characters.
MAX_TOGETHER = 45
#: Suffix that a multi-node component adds: its leader's clique has this name.
_LEADER = f"-{LEADERS}"
_SUFFIX = "-dgd"
_LETTER = "dgdr-"


def desired_name(spec: DynamoGraphDeploymentRequestSpec) -> str | None:
    """The name of the graph in `overrides.dgd`."""
    override = spec.overrides.dgd if spec.overrides else None
    return text(mapping(mapping(override).get("metadata")).get("name")) or None


def graph_name(request: str, desired: str | None, components: Iterable[tuple[str, bool]]) -> str:
    """`<request>-dgd`, shortened with a hash if necessary. `desired` replaces it, and is never shortened.

    `components`: names, each with whether the component spans nodes. Raises ProfilingFailed if `desired` is too long.
    """
    longest = max(len(name) + (len(name) + len(_LEADER) if spans else 0) for name, spans in components)
    room = MAX_TOGETHER - longest
    if desired:
        if len(desired) > room:
            raise ProfilingFailed(
                "NameTooLong",
                f"spec.overrides.dgd.metadata.name: {desired!r} has {len(desired)} characters; together with component names it "
                f"may have {room}: shorten it",
            )
        return desired
    # Names of Services contain the graph's name, and must begin with a letter.
    full = ("" if request[:1].isalpha() else _LETTER) + request.replace(".", "-") + _SUFFIX
    if len(full) <= room:
        return full
    digest = hashlib.sha256(request.encode()).hexdigest()[:6]
    return f"{full[: room - len(_SUFFIX) - len(digest) - 1].rstrip('-')}-{digest}{_SUFFIX}"

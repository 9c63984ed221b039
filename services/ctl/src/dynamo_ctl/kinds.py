"""Names of kinds as kubectl takes them: short (`dgd`), the kind or its plural, in any case, with or without the group."""

from dynamo_shared.api.resources import GROUP

#: Short names, and the kinds in lower case, as subjects of events have them. Of two short names the first is shown.
SHORT_NAMES = {
    "dgd": "dynamographdeployment",
    "dcd": "dynamocomponentdeployment",
    "dgdr": "dynamographdeploymentrequest",
    "dgdsa": "dynamographdeploymentscalingadapter",
    "dckpt": "dynamocheckpoint",
    "dm": "dynamomodel",
    "dmodel": "dynamomodel",
    "dwm": "dynamoworkermetadata",
}
_SHORT = {kind: short for short, kind in reversed(SHORT_NAMES.items())}


def full_name(name: str) -> str:
    """The kind in lower case that a name stands for; any other name in lower case, and without a plural's s."""
    plain, _, group = name.lower().partition(".")
    # dynamographdeployments.nvidia.com, or with a version: dynamographdeployments.v1beta1.nvidia.com.
    if group and group != GROUP and not group.endswith(f".{GROUP}"):
        return name.lower()
    singular = plain.removesuffix("s")
    return SHORT_NAMES.get(singular, singular)


def short_name(name: str) -> str:
    """The short name of a kind, by any of its names; of a kind without one its name in lower case."""
    full = full_name(name)
    return _SHORT.get(full, full)

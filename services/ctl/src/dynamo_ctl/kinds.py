"""Names of kinds, as kubectl accepts them: short (`dgd`), kind or plural, in any case, with or without the group."""

from dynamo_shared.api.resources import GROUP

#: Short name -> kind in lower case, as in subjects of events. If a kind has two short names, the first is displayed.
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
    """The kind of a name, in lower case. An unknown name is returned in lower case, without the s of a plural."""
    plain, _, group = name.lower().partition(".")
    # dynamographdeployments.nvidia.com, or with a version: dynamographdeployments.v1beta1.nvidia.com.
    if group and group != GROUP and not group.endswith(f".{GROUP}"):
        return name.lower()
    singular = plain.removesuffix("s")
    return SHORT_NAMES.get(singular, singular)


def short_name(name: str) -> str:
    """The short name of a kind, from any of its names. A kind without a short name: its name in lower case."""
    full = full_name(name)
    return _SHORT.get(full, full)

"""Rules of handlers and security profiles. Objects may have fields of any type."""

from typing import Any

from dynamo_shared.api.embedded.rules import paths
from dynamo_shared.api.field_errors import shown
from dynamo_shared.api.rules import Violations

_NO_PROFILE = "required, because type is Localhost: the path of the profile on the node"
_HANDLERS = ("exec", "httpGet", "sleep", "tcpSocket")
_ONLY_OF_THE_NODE = "only allowed with type Localhost: leave it out"
#: Size limit of the name of a profile. Bytes.
_MAX_PROFILE_BYTES = 4095


def lifecycle_handler(value: dict[str, Any]) -> Violations:
    """A lifecycle handler has exactly one action."""
    given = [name for name in _HANDLERS if isinstance(value.get(name), dict)]
    if len(given) > 1:
        yield (), f"must have one action, not {' and '.join(given)}"
    elif not given and not any(value.values()):
        yield (), "must have an action, such as exec or httpGet"


def app_armor_profile(value: dict[str, Any]) -> Violations:
    """Only a Localhost profile has a name."""
    profile, is_local = value.get("localhostProfile"), value.get("type") == "Localhost"
    if is_local and not profile:
        yield ("localhostProfile",), _NO_PROFILE
    elif is_local and isinstance(profile, str):
        if profile != profile.strip():
            yield ("localhostProfile",), f"{shown(profile)} must not begin or end with blanks"
        elif len(profile.encode(errors="replace")) > _MAX_PROFILE_BYTES:
            yield ("localhostProfile",), f"must not have more than {_MAX_PROFILE_BYTES} bytes"
    elif profile is not None and value.get("type"):
        yield ("localhostProfile",), _ONLY_OF_THE_NODE


def seccomp_profile(value: dict[str, Any]) -> Violations:
    """Only a Localhost profile has a path, relative to the node's folder of profiles; it may be empty."""
    profile = value.get("localhostProfile")
    if value.get("type") != "Localhost":
        if profile is not None and value.get("type"):
            yield ("localhostProfile",), _ONLY_OF_THE_NODE
    elif profile is None:
        yield ("localhostProfile",), _NO_PROFILE
    elif problem := paths.not_below(profile):
        yield ("localhostProfile",), problem

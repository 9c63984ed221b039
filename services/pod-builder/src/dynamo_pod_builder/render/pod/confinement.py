"""What a container of the platform inherits from the engine's: its user, and its restrictions."""

from dynamo_shared.api.objects import KubeObject

#: Fields that grant rights. A container that helps an engine needs none of them.
_GRANTING = frozenset({"capabilities", "privileged", "procMount"})


def confined_like(main: KubeObject) -> KubeObject:
    """Fields of a container next to `main`, so that a namespace that admits one admits the other.

    Pod Security has the same rules for every container of a pod, and images with user root do not start if only the
    engine's container sets another user.
    """
    given = main.get("securityContext") or {}
    taken = {name: value for name, value in given.items() if name not in _GRANTING}
    if dropped := (given.get("capabilities") or {}).get("drop"):
        taken["capabilities"] = {"drop": dropped}
    return {"securityContext": taken} if taken else {}

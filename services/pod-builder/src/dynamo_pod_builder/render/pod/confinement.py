"""What a container of the platform takes over of the engine's: who it runs as, and what it may not do."""

from dynamo_shared.api.objects import KubeObject

#: What gives rights. A container that helps an engine needs none of them.
_GRANTING = frozenset({"capabilities", "privileged", "procMount"})


def confined_like(main: KubeObject) -> KubeObject:
    """Fields of a container next to `main`, so that a namespace that takes the one takes the other.

    Pod Security asks every container of a pod the same, and images whose user is root do not start where only the engine's
    container names another one.
    """
    given = main.get("securityContext") or {}
    taken = {name: value for name, value in given.items() if name not in _GRANTING}
    if dropped := (given.get("capabilities") or {}).get("drop"):
        taken["capabilities"] = {"drop": dropped}
    return {"securityContext": taken} if taken else {}

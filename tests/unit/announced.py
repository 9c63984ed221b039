"""An announcer for tests: it keeps the facts instead of writing them."""

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.runtime.facts import Announcer, Fact


class Announced(Announcer):
    """What was announced, in order."""

    def __init__(self) -> None:
        self.facts: list[Fact] = []
        self.about: list[str] = []
        """names of the objects of `facts`"""

    def announce(self, obj: KubeObject, fact: Fact) -> None:
        self.facts.append(fact)
        self.about.append(obj["metadata"]["name"])

    @property
    def lines(self) -> list[str]:
        """What users read in Kubernetes Events."""
        return [f"{each.type} {each.reason} {each.action}: {each.message}" for each in self.facts if each.reason]

    @property
    def events(self) -> list[str]:
        """The CloudEvents that programs receive."""
        return [each.event for each in self.facts if each.event is not None]

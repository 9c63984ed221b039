"""The index of the reference."""

from dynamo_shared.api.crds.kinds import DEFINITIONS

from tools.generate.reference import kinds
from tools.generate.reference.markdown import page, table


def pages() -> dict[str, str]:
    """The index, by its path below docs/reference."""
    links = [
        (
            each.kind,
            ", ".join(
                f"[{version.resource.version}]({kinds.file_name(each.kind, version.resource.version)})"
                for version in reversed(each.versions)
            ),
        )
        for each in DEFINITIONS
    ]
    return {
        "README.md": page(
            "Reference",
            "the code that each page names",
            "What users and programs can rely on. Every page is made from the code that does what it says; `make verify` "
            "fails where they differ. [The policy](../policy.md) says how any of it may change.",
            table(("Page", "What is there"), _PAGES),
            "## Fields, by kind and version",
            table(("Kind", "Versions"), links),
        )
    }


_PAGES = (
    ("[Kinds](kinds.md)", "names, versions, scopes, columns and scale of all kinds"),
    ("[Versions and deprecations](deprecations.md)", "what is served, stored, deprecated, and until when"),
    ("[Validation rules](../validation.md)", "what is refused beyond types and bounds, and in which words"),
    ("[Contracts](contracts.md)", "documents within objects and variables: planner, profiler, overrides"),
    ("[Labels](labels.md)", "labels that the platform sets or reads"),
    ("[Annotations](annotations.md)", "annotations that the platform sets or reads"),
    ("[Ports](ports.md)", "ports of pods, and of the platform's own services"),
    ("[Environment](environment.md)", "variables of containers"),
    ("[Configuration](configuration.md)", "settings of the platform"),
    ("[REST API](rest.md)", "routes of the service dynadmin, their bodies and answers"),
    ("[Events](events.md)", "CloudEvents on NATS, and commands that are taken there"),
    ("[Reasons](reasons.md)", "reasons of Kubernetes Events, by service"),
    ("[Metrics](metrics.md)", "Prometheus metrics of all services"),
)

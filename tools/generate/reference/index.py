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
            "The API that users and programs can rely on. Every page is generated from the code that implements it; "
            "`make verify` fails if they differ. [The policy](../policy.md) says how the API may change.",
            table(("Page", "Content"), _PAGES),
            "## Fields, by kind and version",
            table(("Kind", "Versions"), links),
        )
    }


_PAGES = (
    ("[Kinds](kinds.md)", "names, versions, scopes, columns and scale of all kinds"),
    ("[Versions and deprecations](deprecations.md)", "versions that are served, stored and deprecated, and until when"),
    ("[Validation rules](../validation.md)", "rules beyond types and bounds, with their messages"),
    ("[Contracts](contracts.md)", "documents inside objects and variables: planner, profiler, overrides"),
    ("[Labels](labels.md)", "labels that the platform sets or reads"),
    ("[Annotations](annotations.md)", "annotations that the platform sets or reads"),
    ("[Ports](ports.md)", "ports of pods, and of the platform's own services"),
    ("[Environment](environment.md)", "variables of containers"),
    ("[Configuration](configuration.md)", "settings of the platform"),
    ("[REST API](rest.md)", "routes of the service dynadmin, their bodies and answers"),
    ("[Events](events.md)", "CloudEvents and commands on NATS"),
    ("[Reasons](reasons.md)", "reasons of Kubernetes Events, by service"),
    ("[Metrics](metrics.md)", "Prometheus metrics of all services"),
)

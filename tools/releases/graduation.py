"""The API's progress to v1: the criteria of the formalization proposal, each computed from the checkout."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from dynamo_shared.api.contracts import CONTRACTS
from dynamo_shared.api.crds.kinds import DEFINITIONS
from dynamo_shared.api.registry import CATALOGS

from tools.releases.compare import breaking, compare
from tools.releases.history import releases, version_of
from tools.releases.policy import violations
from tools.releases.snapshot import Snapshot, today

TO_BETA, TO_STABLE = "From v1alpha1 to v1beta1", "From v1beta1 to v1"
#: Number of releases that must have passed (formalization proposal, graduation criteria).
RELEASES_IN_USE, RELEASES_OF_POLICY, RELEASES_WITHOUT_BREAKING = 2, 2, 3
UPGRADE_TEST = Path("tests") / "unit" / "upgrade" / "test_frozen_releases.py"


@dataclass(frozen=True, slots=True)
class Criterion:
    """One line of the proposal: its step, whether it is met, and why."""

    step: str
    text: str
    met: bool
    why: str

    def __str__(self) -> str:
        return f"{'met' if self.met else 'not yet'}: {self.text} ({self.why})"


def criteria(root: Path) -> list[Criterion]:
    """All criteria, in the order of the proposal."""
    return [*_to_beta(root, releases(root)), *_to_stable(root, releases(root))]


def _to_beta(root: Path, past: Sequence[Snapshot]) -> Iterator[Criterion]:
    count = len(past)
    broken = list(violations(compare(past[-1], today(root, version_of(root))), past, version_of(root))) if past else []
    yield Criterion(
        TO_BETA,
        "All fields that must stabilize are locked",
        bool(past) and not broken,
        f"{count} release files, {len(broken)} changes against the last one without notice",
    )
    names = {each.name for each in CONTRACTS}
    needed = ("profilingConfig", "deploymentOverrides")
    schemas = [
        name for name in needed if name in names and (root / "proto/schemas/contracts" / f"{name}.json").is_file()
    ]
    yield Criterion(
        TO_BETA,
        "JSON Schemas for complex types (`profilingConfig`, `deploymentOverrides`)",
        len(schemas) == len(needed),
        f"schemas: {', '.join(schemas) or 'none'}",
    )
    entries = {catalog.title.lower(): len(catalog.entries) for catalog in CATALOGS}
    for text, title, page in (
        ("Label registry documented", "labels", "labels.md"),
        ("Port registry documented", "ports", "ports.md"),
        ("Environment variable contracts documented", "environment variables", "environment.md"),
    ):
        there = (root / "docs" / "reference" / page).is_file()
        number = next((number_of for name, number_of in entries.items() if title in name), 0)
        yield Criterion(TO_BETA, text, there and number > 0, f"docs/reference/{page}, {number} entries")
    cases = len(list((root / "tests" / "admission" / "cases").rglob("*.yaml")))
    yield Criterion(
        TO_BETA, "Webhook validation for all required fields", cases > 0, f"{cases} bad manifests are refused"
    )
    yield _released(TO_BETA, f"At least {RELEASES_IN_USE} releases in production use", count, RELEASES_IN_USE)


def _to_stable(root: Path, past: Sequence[Snapshot]) -> Iterator[Criterion]:
    yield _released(TO_STABLE, "Deprecation policy enforced for 2+ releases", len(past), RELEASES_OF_POLICY)
    stable = [each.kind for each in DEFINITIONS if any(version.resource.version == "v1" for version in each.versions)]
    yield Criterion(
        TO_STABLE,
        "Conversion webhooks for v1alpha1 to v1",
        bool(stable),
        f"kinds with a v1: {', '.join(stable) or 'none'}",
    )
    missing = [each.kind for each in DEFINITIONS if not _has_page(root, each.kind)]
    yield Criterion(
        TO_STABLE,
        "API reference documentation complete",
        not missing,
        f"kinds without a page: {', '.join(missing) or 'none'}",
    )
    tested = (root / UPGRADE_TEST).is_file()
    read = "reads objects and messages of each release, and no engine serves meanwhile"
    yield Criterion(
        TO_STABLE,
        "Upgrade testing with real workloads",
        False,
        f"{UPGRADE_TEST.as_posix()} {read if tested else 'is missing'}",
    )
    calm = 0
    for older, newer in reversed(list(pairwise(past))):
        if breaking(compare(older, newer)):
            break
        calm += 1
    yield _released(TO_STABLE, "No breaking changes for 3+ releases", calm, RELEASES_WITHOUT_BREAKING)


def _released(step: str, text: str, count: int, needed: int) -> Criterion:
    return Criterion(step, text, count >= needed, f"{count} of {needed}")


def _has_page(root: Path, kind: str) -> bool:
    return any((root / "docs" / "reference" / "kinds").glob(f"{kind.lower()}-*.md"))

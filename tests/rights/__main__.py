"""`python -m tests.rights`: compares the integration suite's audit logs with the rights of the services.

`--logs FOLDER` compares existing logs, for example of an installed platform, and runs no tests.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from dynamo_ctl.services import SERVICES

from tests.rights.audit import counted
from tests.rights.compare import compare
from tools.generate.charts.rights import of_service


def main() -> int:
    """Command line; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.rights", description=__doc__)
    parser.add_argument("--logs", type=Path, help="folder of audit logs (*.jsonl)")
    parser.add_argument("--partial", action="store_true", help="do not fail if a right is not used")
    parser.add_argument("arguments", nargs="*", help="arguments of pytest (default: all integration tests)")
    options = parser.parse_args()
    if options.logs is not None:
        return report(options.logs, partial=options.partial)
    with tempfile.TemporaryDirectory(prefix="dynamo-audit-") as folder:
        tests = options.arguments or ["-n", "3", "--dist", "loadfile", "tests/integration"]
        command = [sys.executable, "-m", "pytest", "-q", *tests]
        # pytest reports failed tests itself; their requests count all the same.
        subprocess.run(command, env={**os.environ, "DYNAMO_AUDIT_LOGS": folder}, check=False)
        return report(Path(folder), partial=options.partial or bool(options.arguments))


def report(logs: Path, *, partial: bool) -> int:
    """Print the mismatches and the counts; returns 1 if there are mismatches."""
    rights = {service: of_service(service) for service in SERVICES}
    verdict = compare(counted(logs), rights)
    for title, lines in (
        ("not covered by any right", verdict.lacking),
        ("rights that no request needed", () if partial else verdict.idle),
    ):
        for line in lines:
            print(f"{title}: {line}")
    failed = bool(verdict.lacking) or not verdict.covered or (bool(verdict.idle) and not partial)
    total = sum(len(right.verbs) for each in rights.values() for right in each)
    print(
        f"rights: {verdict.covered} requests covered, {len(verdict.lacking)} kinds not; {total} verbs granted, "
        f"{verdict.used} used, {len(verdict.spoken_for)} unused with a reason, {len(verdict.idle)} without"
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

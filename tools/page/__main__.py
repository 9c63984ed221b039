"""`python -m tools.page [build|check|test|obtain]`: builds the page, compares it, or tests its logic.

`check` needs no Node: the built files name the hash of their sources. `check --built` builds again and compares bytes.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from .node import FOLDER, Node, NoNode
from .source import BUILT, FILES, OPENAPI, SOURCES, problems, record


def build(node: Node, out: Path) -> None:
    """Check the types against the OpenAPI document, and bundle."""
    generator = node.modules / "openapi-typescript/bin/cli.js"
    node.run(str(generator), str(OPENAPI), "--output", str(FOLDER / "schema.ts"), "--root-types", "--silent")
    node.run(str(node.modules / "typescript/bin/tsc"), "--project", str(SOURCES / "tsconfig.json"))
    node.run(str(SOURCES / "build.mjs"), str(node.modules), str(out))


def test(node: Node) -> None:
    """Run the tests of the page's logic, with Node's test runner."""
    with tempfile.TemporaryDirectory() as folder:
        node.run(str(SOURCES / "build.mjs"), str(node.modules), folder, "tests")
        node.run("--test", f"{folder}/tests.mjs")


def same(node: Node) -> list[str]:
    """Built files that differ from a new build of the sources."""
    with tempfile.TemporaryDirectory() as folder:
        build(node, Path(folder))
        return [
            str(BUILT / name) for name in FILES if (Path(folder) / name).read_bytes() != (BUILT / name).read_bytes()
        ]


def _main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.page", description=__doc__)
    parser.add_argument("what", nargs="?", default="build", choices=["build", "check", "test", "obtain"])
    parser.add_argument("--built", action="store_true", help="with check: build again and compare")
    parser.add_argument("--optional", action="store_true", help="succeed even if Node cannot be installed")
    arguments = parser.parse_args()
    if arguments.what == "check" and (wrong := problems()):
        print("\n".join([*wrong, "run: make page"]), file=sys.stderr)
        return 1
    if arguments.what == "check" and not arguments.built:
        return 0
    node = Node()
    try:
        node.obtain()
    except NoNode as error:
        print(error, file=sys.stderr)
        return 0 if arguments.optional else 1
    if arguments.what == "build":
        build(node, BUILT)
        record(BUILT)
        total = sum((BUILT / name).stat().st_size for name in FILES)
        print(f"{BUILT}: {total / 1024:.0f} KiB")
    elif arguments.what == "test":
        test(node)
    elif arguments.what == "check" and (different := same(node)):
        print(
            "\n".join([*(f"{each} differs from what the sources give" for each in different), "run: make page"]),
            file=sys.stderr,
        )
        return 1
    return 0


if __name__ == "__main__":
    try:
        sys.exit(_main())
    except subprocess.CalledProcessError as error:
        sys.exit(error.returncode)

"""The page's logic in Node's test runner, and a rebuild that must equal the committed files.

test_files.py checks without Node that they were built from the current sources.
"""

import pytest

from tools.page.__main__ import same
from tools.page.__main__ import test as run_tests
from tools.page.node import FOLDER, Node


@pytest.fixture(scope="module")
def node() -> Node:
    """Node and the locked packages, if they are installed."""
    if not (FOLDER / ".complete").is_file():
        pytest.skip("Node and the page's packages are not installed: `make page-tools` does so, or says why it cannot")
    installed = Node()
    installed.obtain()
    return installed


def test_logic(node: Node) -> None:
    run_tests(node)


@pytest.mark.long
def test_a_rebuild_equals_the_committed_files(node: Node) -> None:
    assert same(node) == []

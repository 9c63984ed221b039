"""The page's logic in Node's own test runner, and the committed files as the sources become them here.

That they were built of the present sources is a test without Node, in test_files.py.
"""

import pytest

from tools.page.__main__ import same
from tools.page.__main__ import test as run_tests
from tools.page.node import FOLDER, Node


@pytest.fixture(scope="module")
def node() -> Node:
    """Node and the locked packages, where `make test` could have them."""
    if not (FOLDER / ".complete").is_file():
        pytest.skip("Node and the page's packages are not installed: `make page-tools` does so, or says why it cannot")
    installed = Node()
    installed.obtain()
    return installed


def test_logic(node: Node) -> None:
    run_tests(node)


@pytest.mark.long
def test_the_committed_files_are_what_the_sources_become(node: Node) -> None:
    assert same(node) == []

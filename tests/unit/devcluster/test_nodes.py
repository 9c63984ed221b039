"""The creation of simulated nodes."""

from typing import Any

import pytest
from dynamo_devcluster.errors import LocalClusterError
from dynamo_devcluster.nodes import NodeShape, create_nodes


@pytest.mark.parametrize(
    ("status", "body", "says"),
    [
        (403, b'{"kind": "Status", "message": "nodes is forbidden"}', "nodes is forbidden"),
        (500, b"", "500"),
        (503, b"apiserver is shutting down\n", "503 apiserver is shutting down"),
        (429, b'["slow"]', '429 ["slow"]'),
    ],
)
async def test_a_refused_node_is_an_error_with_the_reason(status: int, body: bytes, says: str) -> None:
    """A refusal that is not JSON was a traceback."""

    class Refusing:
        async def request(self, *_: object) -> tuple[int, bytes]:
            return status, body

    http: Any = Refusing()
    with pytest.raises(LocalClusterError) as refused:
        await create_nodes(http, 1, NodeShape(), "v1.35.0")
    assert str(refused.value) == f"the API server refused node kwok-node-0: {says}"

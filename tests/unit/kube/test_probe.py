"""Whether the API server serves a replica: if it does not, and serves another, the other takes over."""

from typing import Any

import pytest
from dynamo_shared.kube.transport import ATTEMPTS
from dynamo_shared.runtime.leasing.etcd import answers

from . import steps


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        (steps.answer({"major": "1"}), True),
        # It serves other paths, and other requests.
        (steps.refuse(403, "Forbidden"), True),
        (steps.refuse(429, "TooManyRequests"), True),
        # Another replica has another path to it, and another token.
        (steps.text("<html>Bad Gateway</html>", 502), False),
        (steps.refuse(503, "ServiceUnavailable"), False),
        (steps.refuse(401, "Unauthorized"), False),
        (steps.reset(), False),
    ],
)
async def test_what_counts_as_an_answer(server: Any, step: steps.Step, expected: bool) -> None:
    server.then(*[step] * ATTEMPTS)
    assert await answers(server.client()) is expected

"""Nothing here works without Helm."""

import pytest

from tests.charts import helm


@pytest.fixture(autouse=True, scope="session")
def _helm() -> None:
    if helm.program() is None:
        pytest.skip("helm is not available")

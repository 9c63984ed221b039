"""All tests of the charts are skipped if Helm is not available."""

import pytest

from tests.charts import helm


@pytest.fixture(autouse=True, scope="session")
def _helm() -> None:
    if helm.program() is None:
        pytest.skip("helm is not available")

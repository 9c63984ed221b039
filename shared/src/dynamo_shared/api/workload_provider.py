"""What runs a graph, as its annotation `nvidia.com/workload-provider` says it."""

from typing import Final

OF_GROVE: Final = "grove"
OF_COMPONENTS: Final = "component"

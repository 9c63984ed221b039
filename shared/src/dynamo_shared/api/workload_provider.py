"""The values of a graph's annotation `nvidia.com/workload-provider`: what runs its components."""

from typing import Final

OF_GROVE: Final = "grove"
OF_COMPONENTS: Final = "component"

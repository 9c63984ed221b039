"""Environment variables that the installation gives to workloads."""

from dynamo_shared.api.registry import env
from dynamo_shared.runtime.settings.operator import Infrastructure


def addresses(infrastructure: Infrastructure) -> dict[str, str]:
    """Variables, by name, with the addresses that the installation configures."""
    variables = {
        env.NATS_SERVER: infrastructure.nats_address,
        env.ETCD_ENDPOINTS: infrastructure.etcd_address,
        env.MODEL_EXPRESS_URL: infrastructure.model_express_url,
        env.PROMETHEUS_ENDPOINT: infrastructure.prometheus_endpoint,
    }
    return {name: address for name, address in variables.items() if address}

"""The addresses of a platform that runs on this machine, for people."""

from dynamo_shared.runtime import Settings

from dynamo_ctl.webhooks import LOOPBACK

NO_ADMISSION = "is not running: set platform.admission.url to an address of this machine that the cluster can call"


def addresses_of(settings: Settings, cluster: str, health_port: int, metrics_port: int) -> list[tuple[str, str]]:
    """Parts and their addresses. `settings`: the settings of the running platform. Port 0 of metrics: no metrics."""
    listed = [
        ("cluster", cluster),
        ("NATS", settings.platform.nats.servers[0]),
        ("admission", settings.platform.admission.url or settings.server.webhook.service_name or NO_ADMISSION),
        ("page, API", page_address(settings)),
        ("health", f"http://{LOOPBACK}:{health_port}/readyz"),
    ]
    if metrics_port:
        scheme = _scheme(secure=settings.server.metrics.secure)
        listed.append(("metrics", f"{scheme}://{LOOPBACK}:{metrics_port}/metrics"))
    return listed


def page_address(settings: Settings) -> str:
    """URL of the page and of the REST API."""
    api = settings.platform.dynadmin
    # With this host name, browsers accept the session's cookie over http, too.
    return f"{_scheme(secure=api.cert_dir is not None)}://localhost:{api.port}/"


def _scheme(*, secure: bool) -> str:
    return "https" if secure else "http"

"""The proxy that leads to the API server."""

import pytest
from dynamo_shared.kube.proxies import proxy_for

PROXY = "http://proxy:3128"


@pytest.mark.parametrize(
    ("server", "no_proxy", "direct"),
    [
        ("https://api.example.com:6443", "", False),
        ("https://api.example.com:6443", "example.com", True),
        ("https://api.example.com:6443", ".example.com", True),
        ("https://api.example.com:6443", "*.example.com", True),
        ("https://api.example.com:6443", "ample.com", False),
        ("https://api.example.com:6443", "api.example.com:6443", True),
        ("https://api.example.com:6443", "api.example.com:443", False),
        ("https://api.example.com:6443", "other, *", True),
        ("https://10.0.0.1", "10.0.0.0/8", True),
        ("https://10.0.0.1", "10.0.0.1", True),
        ("https://10.0.0.1:6443", "10.0.0.1:6443", True),
        ("https://10.0.0.1", "192.168.0.0/16", False),
        ("https://[fd00::1]:6443", "fd00::/8", True),
        ("https://[fd00::1]:6443", "10.0.0.0/8", False),
        ("https://localhost:6443", "", True),
        ("https://127.0.0.1:6443", "", True),
        ("https://[::1]:6443", "", True),
    ],
)
def test_no_proxy(server: str, no_proxy: str, direct: bool) -> None:
    result = proxy_for(server, {"HTTPS_PROXY": PROXY, "NO_PROXY": no_proxy})
    assert result == (None if direct else PROXY)


def test_the_scheme_selects_the_variable_and_lower_case_has_precedence() -> None:
    assert proxy_for("http://a", {"HTTPS_PROXY": PROXY}) is None
    assert proxy_for("http://a", {"http_proxy": PROXY}) == PROXY
    assert proxy_for("https://a", {"https_proxy": "proxy:3128"}) == PROXY
    assert proxy_for("https://a", {}) is None

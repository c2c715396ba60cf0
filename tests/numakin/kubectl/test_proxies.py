"""The way to the API server is the one that kubectl takes, whatever the environment says of proxies."""

from __future__ import annotations

import pytest

from numakin.kubectl.proxies import proxy_for

PROXY = "http://proxy.example:3128"

CASES: dict[str, tuple[str, str, bool]] = {
    "no exception": ("", "https://api.example:6443", False),
    "this machine by name": ("", "https://localhost:6443", True),
    "this machine by address": ("", "https://127.0.0.1:6443", True),
    "this machine by its IPv6 address": ("", "https://[::1]:6443", True),
    "everything": ("*", "https://api.example", True),
    "a network": ("192.168.0.0/16, 10.0.0.0/8", "https://10.1.2.3:6443", True),
    "another network": ("10.0.0.0/8", "https://11.1.2.3:6443", False),
    "an IPv6 network": ("fd00::/8", "https://[fd00::1]:6443", True),
    "a network says nothing of a name": ("0.0.0.0/0", "https://api.example", False),
    "an address": ("10.1.2.3", "https://10.1.2.3:6443", True),
    "an IPv6 address": ("fd00::1", "https://[fd00::1]:6443", True),
    "an IPv6 address with its port": ("[fd00::1]:6443", "https://[fd00::1]:6443", True),
    "a host with its port": ("api.example:6443", "https://api.example:6443", True),
    "a host with another port": ("api.example:443", "https://api.example:6443", False),
    "a host with the port that https has": ("api.example:443", "https://api.example", True),
    "a domain": ("example", "https://api.example", True),
    "a domain with a dot": (".example", "https://api.example", True),
    "a domain with a star": ("*.example", "https://api.example", True),
    "a dot leaves the domain itself out": (".example.org", "https://example.org", False),
    "the end of a name is no domain": ("ample.org", "https://example.org", False),
    "the end of an address is no domain": ("2.3", "https://10.1.2.3", False),
    "capitals": ("API.Example", "https://api.example", True),
}


@pytest.mark.parametrize("case", CASES)
def test_what_no_proxy_names_is_asked_directly(case):
    excepted, url, direct = CASES[case]
    assert proxy_for(url, {"HTTPS_PROXY": PROXY, "NO_PROXY": excepted}) == ("" if direct else PROXY)


@pytest.mark.parametrize(("environment", "url", "proxy"), [
    ({"https_proxy": PROXY}, "https://api.example", PROXY),
    ({"HTTP_PROXY": PROXY}, "https://api.example", ""),
    ({"HTTP_PROXY": PROXY}, "http://api.example", PROXY),
    ({"HTTPS_PROXY": PROXY, "no_proxy": "api.example"}, "https://api.example", ""),
    ({"HTTPS_PROXY": "proxy.example:3128"}, "https://api.example", PROXY),
    ({}, "https://api.example", ""),
], ids=["small letters", "of the other scheme", "of http", "exceptions in small letters", "without its scheme", "none"])  # fmt: skip
def test_a_proxy_is_named_by_the_environment(environment, url, proxy):
    assert proxy_for(url, environment) == proxy

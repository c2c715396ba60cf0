"""A server and a load generator as they come, against the server's own log."""

import shutil
from pathlib import Path

import pytest

from enforcer.observe.bpf.counters import TCP
from enforcer.observe.collectors import cgroup_skb, socket_tracepoints
from lab.standins.patience import PATIENCE_S, until
from tests.enforcer.observe.observe_lab import flows

pytestmark = [
    pytest.mark.bpf,
    pytest.mark.skipif(not (shutil.which("nginx") and shutil.which("wrk")), reason="needs nginx and wrk"),
]

CONFIGURATION = """
daemon off;
pid {folder}/pid;
error_log {folder}/error.log;
events {{}}
http {{
    log_format moved '$request_length $bytes_sent';
    access_log {folder}/access.log moved;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    server {{
        listen 10.87.0.2:80;
        location / {{ return 200 "{body}"; }}
        location /ready {{ access_log off; return 204; }}
    }}
}}
"""


@pytest.fixture
def nginx(lab, pods, tmp_path):
    """Requests' and replies' bytes by the server's own log, after it has ended."""
    configuration = tmp_path / "nginx.conf"
    configuration.write_text(CONFIGURATION.format(folder=tmp_path, body="x" * 1009))
    process = lab.start("nginx", "-p", str(tmp_path), "-c", str(configuration), **pods["server"])
    # 10.87.0.2:80, and nobody at the other end, for it listens.
    until(lambda: "0200570A:0050 00000000:0000 " in Path(f"/proc/{process.pid}/net/tcp").read_text(), "nginx listens")

    def moved():
        process.terminate()
        process.wait()
        lines = [line.split() for line in (tmp_path / "access.log").read_text().splitlines()]
        return len(lines), sum(int(line[0]) for line in lines), sum(int(line[1]) for line in lines)

    return moved


@pytest.mark.parametrize("hook", ["cgroup_skb", "socket_tracepoints"])
def test_wrk_and_nginx_are_counted_within_a_percent(lab, pods, allowed, nginx, hook):
    openers = {
        "cgroup_skb": lambda: cgroup_skb.open_collector(lab.root.path),
        "socket_tracepoints": socket_tracepoints.open_collector,
    }
    collector = allowed(openers[hook])
    wrk = lab.start("wrk", "-t1", "-c7", "-d1s", "http://10.87.0.2/", **pods["client"])
    assert wrk.wait(PATIENCE_S) == 0
    counted = flows(collector.drain(), pods)["server", "10.87.0.1", 80, True, TCP]
    collector.close()
    requests, asked, answered = nginx()
    assert requests > 100
    assert counted.rx_bytes == pytest.approx(asked, rel=0.01)
    assert counted.tx_bytes == pytest.approx(answered, rel=0.01)
    assert counted.tx_messages == pytest.approx(requests, rel=0.01)

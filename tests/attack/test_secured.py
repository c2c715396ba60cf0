"""The base installation's ports, as a pod without any right finds them; and who is let in."""

from __future__ import annotations

import http.client
import ssl
from contextlib import ExitStack

import grpc
import pytest

from extender.kube.readers import TOKEN_HEADER
from extender.serving import limits
from lab.standins.patience import PATIENCE_S, until
from lab.standins.stranger import half_a_handshake
from numakin.wire import report_pb2 as pb
from numakin.wire import report_pb2_grpc as rpc
from tests.attack.hostile import HostilePod, allow_descriptors, memory
from tests.attack.secured import NAMESPACE, Site
from tests.extender.running import recorded
from tests.metrics import value

PATHS = ("explain?namespace=shop&pod=x", "nodes", "groups", "plans", "graph")


def reader(site: Site, name: str, *namespaces: str) -> str:
    """A token of somebody who may list groups there; "" is everywhere."""
    rule = {"apiGroups": ["numakin.io"], "resources": ["affinitygroups"], "verbs": ["list"]}
    token = f"{name}-token"
    for namespace in namespaces:
        token = site.server.grant(name, [rule], namespace)
    return token if namespaces else site.server.grant(name, [])


def test_kube_scheduler_is_let_in_by_the_certificate_that_is_made_for_it(site):
    status, answer = site.ask("POST", "/filter", recorded("basic-nodecache-true.filter"), scheduler=True)
    assert (status, answer["NodeNames"]) == (200, ["n1", "n2", "n3"])


@pytest.mark.parametrize("verb", ["filter", "prioritize", "preempt"])
def test_nobody_else_asks_for_scores(site, verb):
    """Without kube-scheduler's certificate the handshake fails: no byte of a request is read."""
    with pytest.raises((ssl.SSLError, ConnectionError, http.client.BadStatusLine)):
        site.ask("POST", f"/{verb}", recorded("basic-nodecache-true.filter"))
    people = http.client.HTTPSConnection(site.extender.web, timeout=PATIENCE_S, context=site.context())
    people.request("POST", f"/{verb}", recorded("basic-nodecache-true.filter"))
    assert people.getresponse().status == 404
    people.close()


def test_callers_without_the_certificate_are_counted(site):
    """`helm test` tells by it that kube-scheduler was not given its certificate."""
    before = refused(site)
    with pytest.raises((ssl.SSLError, ConnectionError, http.client.BadStatusLine)):
        site.ask("POST", "/filter", b"")
    until(lambda: refused(site) > before, "it is counted")


def refused(site: Site) -> float:
    people = http.client.HTTPSConnection(site.extender.web, timeout=PATIENCE_S, context=site.context())
    people.request("GET", "/metrics")
    text = people.getresponse().read().decode()
    people.close()
    name = "numakin_extender_over_limit_total"
    return value(text, name, limit="certificate") if f'{name}{{limit="certificate"}}' in text else 0.0


def test_the_extender_s_own_certificate_is_no_client_s(site):
    """Whoever stole a server's certificate does not become kube-scheduler by it."""
    (folder,) = site.folder.glob("numakin-tls-*")
    context = site.context()
    context.load_cert_chain(folder / "tls.crt", folder / "tls.key")
    connection = http.client.HTTPSConnection(site.extender.http, timeout=PATIENCE_S, context=context)

    def ask() -> int:
        connection.request("POST", "/filter", recorded("basic-nodecache-true.filter"))
        return connection.getresponse().status

    with pytest.raises((ssl.SSLError, ConnectionError, http.client.BadStatusLine)):
        ask()
    connection.close()


def test_a_crowd_with_half_a_handshake_each_takes_little_memory_and_keeps_nobody_out(site):
    allow_descriptors()
    before = memory(site.extender.pid)
    with ExitStack() as stack:
        for number in range(1, 31):
            pod = stack.enter_context(HostilePod(site.extender.http, f"127.3.0.{number}"))
            pod.hold(limits.CONNECTIONS_PER_PEER, half_a_handshake())
        status, _ = site.ask("POST", "/filter", recorded("basic-nodecache-true.filter"), scheduler=True)
        assert site.ask("GET", "/api/v1/nodes")[0] == 401
    assert status == 200
    assert memory(site.extender.pid) - before < 160 << 20


def test_more_connections_than_the_port_takes_leave_no_fault_behind(site):
    """Those that are cut off before their handshake, those that end in it, and those that end after an answer."""
    allow_descriptors()
    with ExitStack() as stack:
        for number in range(1, 41):
            pod = stack.enter_context(HostilePod(site.extender.http, f"127.4.0.{number}"))
            pod.hold(limits.CONNECTIONS_PER_PEER, half_a_handshake())
        for _ in range(3):
            assert site.ask("POST", "/filter", recorded("basic-nodecache-true.filter"), scheduler=True)[0] == 200
    assert site.ask("POST", "/filter", recorded("basic-nodecache-true.filter"), scheduler=True)[0] == 200
    assert "Traceback" not in site.extender.log.read_text()


@pytest.mark.parametrize("port", ["http", "web"])
def test_plain_http_is_not_answered(site, port):
    connection = http.client.HTTPConnection(getattr(site.extender, port), timeout=PATIENCE_S)
    connection.request("GET", "/readyz")
    with pytest.raises((ConnectionError, http.client.BadStatusLine)):
        connection.getresponse()
    connection.close()


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "headers", [{}, {"Authorization": "Bearer nonsense"}, {"Authorization": "Basic eDp4"}], ids=str
)
def test_nothing_is_read_without_a_token(site, path, headers):
    assert site.ask("GET", f"/api/v1/{path}", **headers)[0] == 401


@pytest.mark.parametrize("path", PATHS)
def test_nothing_is_read_by_who_has_no_right(site, path):
    token = reader(site, "nobody")
    status, answer = site.ask("GET", f"/api/v1/{path}", Authorization=f"Bearer {token}")
    assert status == 403
    assert answer["error"].startswith("nobody may not list affinitygroups.numakin.io in ")


def test_a_tenant_reads_about_its_own_namespace_alone(site):
    token = f"Bearer {reader(site, 'tenant', 'shop')}"
    assert site.ask("GET", "/api/v1/explain?namespace=shop&pod=x", Authorization=token)[0] == 404
    assert site.ask("GET", "/api/v1/explain?namespace=other&pod=x", Authorization=token)[0] == 403
    assert site.ask("GET", "/api/v1/graph", Authorization=token)[0] == 403
    assert site.ask("GET", "/api/v1/graph?namespace=shop", Authorization=token)[0] == 403


@pytest.mark.parametrize("header", ["Authorization", TOKEN_HEADER])
def test_who_may_list_all_groups_reads_everything(site, header):
    token = reader(site, "admin-of-all", "")
    value = f"Bearer {token}" if header == "Authorization" else token
    assert [site.ask("GET", f"/api/v1/{path}", **{header: value})[0] for path in PATHS] == [404, 200, 200, 200, 200]


def stream(site: Site, token: str) -> grpc.RpcError:
    bundle = site.server.get("v1", "configmaps", "numakin-ca-bundle", NAMESPACE)["data"]["ca.crt"].encode()
    hello = pb.FromEnforcer(hello=pb.Hello(node="n1", session="s"))
    with grpc.secure_channel(site.extender.grpc, grpc.ssl_channel_credentials(bundle)) as channel:
        answers = rpc.ReportsStub(channel).Stream(
            iter([hello]), timeout=PATIENCE_S, metadata=[("authorization", f"Bearer {token}")]
        )
        with pytest.raises(grpc.RpcError) as caught:
            next(answers)
        return caught.value


@pytest.mark.parametrize("token", ["", "nonsense"])
def test_no_report_is_taken_without_the_enforcer_s_token(site, token):
    assert stream(site, token).code() is grpc.StatusCode.UNAUTHENTICATED


def test_no_report_is_taken_by_a_reader_s_token(site):
    assert stream(site, reader(site, "admin-of-all", "")).code() is grpc.StatusCode.UNAUTHENTICATED


def test_the_authority_is_kept_over_a_restart(site):
    before = site.secret("numakin-own-ca")
    site.extender.end()
    site.extender.start()
    assert site.secret("numakin-own-ca") == before
    test_kube_scheduler_is_let_in_by_the_certificate_that_is_made_for_it(site)

"""The page of an extender that answers only those who may read, as the base installation runs it."""

from __future__ import annotations

import shutil
import ssl
import subprocess
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import grpc
import pytest
import yaml
from playwright.sync_api import Page, expect

from extender.kube.readers import TOKEN_HEADER
from lab.standins.apiserver import ApiServer
from lab.standins.extender import ExtenderProcess
from tests.certificates import Authority, Mount, needed
from tests.extender.running import Enforcer, machine
from tests.manifests.rendered import files, one
from tests.web.axe import faults

pytestmark = needed

NAMESPACE, VIEWER = "placement", "numakin-viewer"
READER = one(files(), "ClusterRole", "numakin-reader")["rules"]
PROXY = f"api/v1/namespaces/{NAMESPACE}/services/https:numakin-extender:web/proxy/"


@dataclass
class Site:
    server: ApiServer
    extender: ExtenderProcess
    ca: Path

    @property
    def url(self) -> str:
        return f"https://{self.extender.web}/"

    def token(self) -> str:
        """As the page's command prints it."""
        return self.server.tokens.make(NAMESPACE, VIEWER, ("numakin",))

    def enforcer(self, node: str) -> Enforcer:
        bundle = self.server.get("v1", "configmaps", "numakin-ca-bundle", NAMESPACE)["data"]["ca.crt"]
        channel = grpc.secure_channel(self.extender.grpc, grpc.ssl_channel_credentials(bundle.encode()))
        enforcer = Enforcer(self.extender.grpc, node, str(uuid.uuid4()), channel=channel)
        enforcer.report(machine())
        return enforcer


def tls(authority: Authority, folder: Path) -> ssl.SSLContext:
    """A server's. kubectl sends no token without TLS."""
    mount = Mount(folder / "apiserver", authority.issue("IP:127.0.0.1"))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(mount.cert, mount.key)
    return context


def trusting(ca: Path, kubeconfig: Path) -> Path:
    config = yaml.safe_load(kubeconfig.read_text())
    config["clusters"][0]["cluster"]["certificate-authority"] = str(ca)
    kubeconfig.write_text(yaml.safe_dump(config))
    return kubeconfig


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The rights are those of the manifests."""
    folder = tmp_path_factory.mktemp("token")
    objects = files()
    authority = Authority(folder / "ca")
    with ApiServer(tls=tls(authority, folder)) as server:
        server.define(one(objects, "CustomResourceDefinition", "affinitygroups.numakin.io"))
        server.create("v1", "namespaces", {"metadata": {"name": NAMESPACE}})
        server.create("v1", "services", {"metadata": {"name": "numakin-extender"}}, NAMESPACE)
        server.grant(f"system:serviceaccount:{NAMESPACE}:{VIEWER}", READER)
        token = server.grant("extender", one(objects, "ClusterRole", "numakin-extender")["rules"])
        server.grant("extender", one(objects, "Role", "numakin-extender")["rules"], NAMESPACE)
        kubeconfig = trusting(authority.ca, server.kubeconfig(folder / "kubeconfig", token))
        options = ("--kubeconfig", str(kubeconfig), "--namespace", NAMESPACE, "--own-ca", "--authorise-readers")
        extender = ExtenderProcess(folder, options)
        extender.start()
        server.behind.backends["services", NAMESPACE, "numakin-extender", "web"] = f"https://{extender.web}"
        yield Site(server, extender, authority.ca)
        extender.end()


@pytest.fixture
def site(started: Site) -> Iterator[Site]:
    """Its node n1 has reported."""
    enforcer = started.enforcer("n1")
    yield started
    enforcer.close()


def paste(page: Page, token: str) -> None:
    page.get_by_label("Token").fill(token)
    page.get_by_role("button", name="Show the cluster").click()


def test_without_a_token_the_page_asks_for_one_and_shows_nothing_else(site: Site, page: Page) -> None:
    page.goto(f"{site.url}#view=nodes")
    expect(page.get_by_label("Token")).to_be_focused()
    expect(page.get_by_text(f"kubectl -n {NAMESPACE} create token {VIEWER} --audience=numakin")).to_be_visible()
    expect(page.get_by_role("alert")).to_have_count(0)
    expect(page.get_by_text("n1", exact=True)).to_have_count(0)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_in_the_form(site: Site, page: Page, scheme: str) -> None:
    page.emulate_media(color_scheme=scheme)
    page.goto(site.url)
    expect(page.get_by_label("Token")).to_be_visible()
    assert faults(page) == ""
    paste(page, "nonsense")
    expect(page.get_by_role("alert")).to_be_visible()
    assert faults(page) == ""


def test_with_a_token_what_is_shown_follows_the_cluster(site: Site, page: Page) -> None:
    page.goto(f"{site.url}#view=nodes")
    paste(page, f"  {site.token()} ")
    expect(page.get_by_role("row", name="n1")).to_be_visible()
    expect(page.get_by_role("status").filter(has_text="live")).to_be_visible()
    with page.expect_request(lambda request: "/api/v1/node?" in request.url):
        page.get_by_role("button", name="n1").click()
    expect(page.get_by_role("complementary").get_by_role("heading", name="n1")).to_be_visible()
    enforcer = site.enforcer("n2")
    expect(page.get_by_role("row", name="n2")).to_contain_text("live")
    enforcer.close()
    expect(page.get_by_role("row", name="n2")).to_contain_text("reconnecting")
    assert faults(page) == ""


def test_changes_come_by_one_stream_that_carries_the_token(site: Site, page: Page) -> None:
    page.goto(f"{site.url}#view=nodes")
    token = site.token()
    with page.expect_response(lambda response: "/changes" in response.url) as stream:
        paste(page, token)
    assert stream.value.status == 200
    assert stream.value.headers["content-type"].startswith("text/event-stream")
    assert stream.value.request.headers[TOKEN_HEADER.lower()] == token


def test_the_token_is_kept_over_a_reload_but_by_this_tab_alone(site: Site, page: Page) -> None:
    token = site.token()
    page.goto(f"{site.url}#view=nodes")
    paste(page, token)
    expect(page.get_by_role("row", name="n1")).to_be_visible()
    page.reload()
    expect(page.get_by_role("row", name="n1")).to_be_visible()
    assert token not in page.url
    assert token not in page.evaluate("() => JSON.stringify(localStorage) + document.cookie")
    other = page.context.new_page()
    other.goto(site.url)
    expect(other.get_by_label("Token")).to_be_visible()


def test_it_can_be_forgotten(site: Site, page: Page) -> None:
    page.goto(f"{site.url}#view=nodes")
    paste(page, site.token())
    page.get_by_role("button", name="Forget token").click()
    expect(page.get_by_label("Token")).to_be_focused()
    expect(page.get_by_role("row", name="n1")).to_have_count(0)
    assert page.evaluate("() => sessionStorage.length") == 0
    page.reload()
    expect(page.get_by_label("Token")).to_be_visible()


def test_a_wrong_token_is_said_to_be_unknown_and_is_not_kept(site: Site, page: Page) -> None:
    page.goto(site.url)
    paste(page, "nonsense")
    expect(page.get_by_role("alert")).to_have_text("Refused: the API server does not know this token")
    assert page.evaluate("() => sessionStorage.length") == 0
    paste(page, site.token())
    expect(page.get_by_role("region", name="Node n1")).to_be_visible()


def test_who_may_not_read_is_told_which_right_is_missing(site: Site, page: Page) -> None:
    page.goto(site.url)
    paste(page, site.server.grant("tenant", []))
    missing = "tenant may not list affinitygroups.numakin.io in all namespaces"
    expect(page.get_by_role("alert")).to_have_text(f"Refused: {missing}")


def test_what_is_no_token_is_not_sent(site: Site, page: Page) -> None:
    page.goto(site.url)
    paste(page, "Zertifikat für n1")
    assert page.get_by_label("Token").evaluate("field => field.validity.patternMismatch")
    assert page.evaluate("() => sessionStorage.length") == 0


def test_another_is_asked_for_when_it_has_run_out(site: Site, page: Page) -> None:
    token = site.server.grant("ann", READER)
    page.goto(f"{site.url}#view=nodes")
    paste(page, token)
    expect(page.get_by_role("row", name="n1")).to_be_visible()
    del site.server.tokens.static[token]
    expect(page.get_by_role("alert")).to_have_text("Refused: the API server does not know this token")
    expect(page.get_by_role("row", name="n1")).to_have_count(0)
    paste(page, site.token())
    expect(page.get_by_role("row", name="n1")).to_be_visible()


@pytest.fixture
def proxied(site: Site, tmp_path: Path) -> Iterator[str]:
    """The page's address behind `kubectl proxy` of somebody with a viewer's rights."""
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        pytest.skip("no kubectl: nobody has looked at the page through its proxy")
    rules = one(files(), "ClusterRole", "numakin-viewer")["rules"]
    granted = site.server.grant("viewer", rules)
    kubeconfig = trusting(site.ca, site.server.kubeconfig(tmp_path / "kubeconfig", granted))
    command = [kubectl, "--kubeconfig", str(kubeconfig), "proxy", "--port=0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as proxy:
        assert proxy.stdout is not None
        yield f"http://{proxy.stdout.readline().split()[-1]}/{PROXY}"
        proxy.terminate()


def test_it_works_through_kubectl_proxy(site: Site, proxied: str, page: Page) -> None:
    page.goto(f"{proxied}#view=nodes")
    paste(page, site.token())
    expect(page.get_by_role("row", name="n1")).to_be_visible()
    enforcer = site.enforcer("n3")
    expect(page.get_by_role("row", name="n3")).to_contain_text("live")
    enforcer.close()

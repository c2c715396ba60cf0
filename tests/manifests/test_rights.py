"""What the programs may do and reach, and who may reach them."""

from pathlib import Path

import pytest

from enforcer.settings.config import Config
from enforcer.settings.options import configured, run_options
from extender.config import load
from extender.kube.tls import own_ca
from extender.kube.tokens import AUDIENCE
from tests.manifests.pods import ASKED, arguments
from tests.manifests.rendered import files, one, rendered


def test_the_enforcer_has_powers_by_name_and_no_api_rights(objects):
    spec = one(objects, "DaemonSet", "numakin-enforcer")["spec"]["template"]["spec"]
    context = spec["containers"][0]["securityContext"]
    assert not context["privileged"]
    assert context["capabilities"]["drop"] == ["ALL"]
    assert set(context["capabilities"]["add"]) == {"BPF", "PERFMON", "NET_ADMIN", "SYS_PTRACE", "SYS_RESOURCE"}
    assert spec["automountServiceAccountToken"] is False
    (token,) = [each["projected"]["sources"] for each in spec["volumes"] if "projected" in each]
    assert [each["serviceAccountToken"]["audience"] for each in token] == [AUDIENCE]
    bound = [each for each in objects if each["kind"] in ("RoleBinding", "ClusterRoleBinding")]
    subjects = {subject["name"] for each in bound for subject in each["subjects"]}
    assert subjects == {"numakin-extender", "numakin-viewer"}


def test_the_enforcer_mounts_four_folders_of_the_node(objects):
    spec = one(objects, "DaemonSet", "numakin-enforcer")["spec"]["template"]["spec"]
    paths = {each["hostPath"]["path"] for each in spec["volumes"] if "hostPath" in each}
    (cri,) = [option for option in spec["containers"][0]["args"] if option.startswith("--cri-socket=")] or [""]
    runtime = str(Path(cri.removeprefix("--cri-socket=")).parent) if cri else "/var/run/nri"
    assert paths == {runtime, "/run/numakin", "/sys/fs/cgroup", "/var/lib/kubelet/pod-resources"}
    mounts = {each["mountPath"]: each.get("readOnly", False) for each in spec["containers"][0]["volumeMounts"]}
    assert mounts["/var/lib/kubelet/pod-resources"]
    assert Path(Config().podresources_socket).parent == Path("/var/lib/kubelet/pod-resources")


def test_cgroups_are_written_in_bypass_mode_alone(objects):
    container = one(objects, "DaemonSet", "numakin-enforcer")["spec"]["template"]["spec"]["containers"][0]
    read_only = {each["mountPath"]: each.get("readOnly", False) for each in container["volumeMounts"]}
    options = arguments(objects, "DaemonSet", "numakin-enforcer")[1:]
    bypass = configured(run_options().parse_args(options)).mode == "bypass"
    assert read_only["/sys/fs/cgroup"] != bypass
    assert read_only.get("/run/containerd", True), "a socket in a folder that can't be written can be spoken to"


def test_the_extender_is_nobody(objects):
    spec = one(objects, "Deployment", "numakin-extender")["spec"]["template"]["spec"]
    assert spec["securityContext"]["runAsNonRoot"]
    context = spec["containers"][0]["securityContext"]
    assert context["readOnlyRootFilesystem"]
    assert context["capabilities"] == {"drop": ["ALL"]}


def test_only_one_overlay_is_plaintext(objects, request):
    config = load(arguments(objects, "Deployment", "numakin-extender"), {})
    plain = request.node.callspec.params["objects"] == "overlays/plaintext"
    assert plain != (config.own_ca or bool(config.tls_cert and config.grpc_tls_cert))
    enforcer = configured(run_options().parse_args(arguments(objects, "DaemonSet", "numakin-enforcer")[1:]))
    assert plain != bool(enforcer.extender_ca)


def test_readers_are_authorised_and_enforcers_prove_their_node_in_every_overlay(objects):
    config = load(arguments(objects, "Deployment", "numakin-extender"), {})
    assert config.authorise_readers
    assert config.enforcer_account == "numakin:numakin-enforcer"


def test_enforcers_start_without_the_bundle_that_the_extender_publishes():
    spec = one(rendered("base"), "DaemonSet", "numakin-enforcer")["spec"]["template"]["spec"]
    (volume,) = [each["configMap"] for each in spec["volumes"] if "configMap" in each]
    assert volume == {"name": own_ca.BUNDLE, "optional": True}


def test_the_extender_may_touch_its_own_secrets_alone():
    rules = one(files(), "Role", "numakin-extender")["rules"]
    (named,) = [rule for rule in rules if rule["resources"] == ["secrets"] and "resourceNames" in rule]
    assert set(named["resourceNames"]) == {own_ca.CA_SECRET, own_ca.SCHEDULER_SECRET}
    everywhere = [rule["resources"] for rule in one(files(), "ClusterRole", "numakin-extender")["rules"]]
    assert not [each for each in everywhere if "secrets" in each]


@pytest.mark.parametrize("overlay", ["overlays/tls", "overlays/tls-cert-manager"])
def test_with_tls_both_ports_have_it_and_no_node_gets_the_key(overlay):
    result = rendered(overlay)
    config = load(arguments(result, "Deployment", "numakin-extender"), {})
    assert config.tls_cert == config.grpc_tls_cert == "/etc/numakin/tls/tls.crt"
    assert config.tls_client_ca
    spec = one(result, "DaemonSet", "numakin-enforcer")["spec"]["template"]["spec"]
    (secret,) = [each["secret"] for each in spec["volumes"] if "secret" in each]
    assert [each["key"] for each in secret["items"]] == ["ca.crt"]


def test_the_certificate_is_for_the_name_that_enforcers_dial():
    result = rendered("overlays/tls-cert-manager")
    names = one(result, "Certificate", "numakin-extender")["spec"]["dnsNames"]
    assert f"{ASKED}.numakin.svc" in names
    (dialled,) = [
        argument
        for argument in arguments(result, "DaemonSet", "numakin-enforcer")
        if argument.startswith("--extender=")
    ]
    assert dialled.removeprefix("--extender=").rpartition(":")[0] in names
    secret = one(result, "Certificate", "numakin-extender")["spec"]["secretName"]
    assert secret == "numakin-extender-tls"

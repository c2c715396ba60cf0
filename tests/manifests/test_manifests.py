"""The manifests fit together, fit the programs, and fit Kubernetes."""

import functools
import json
import re
import tomllib
from collections.abc import Iterator
from typing import Any

import kubernetes_validate
import pytest
import yaml

from enforcer.report.replicas import RESOLVE_EVERY_S
from enforcer.report.stream import LONGEST_WAIT_S
from enforcer.settings.config import MOST_REPLICAS
from enforcer.settings.options import configured, run_options
from extender.config import load
from extender.reports.server import STOP_SECONDS
from extender.serving.application import DRAIN_S
from tests.manifests import foreign
from tests.manifests.pods import ASKED, TOLD, arguments, pod_specs
from tests.manifests.rendered import BEFORE_1_30, MANIFESTS, WHOLE, files, one, rendered
from tests.manifests.structural import OPEN, of_object, violations

SUPPORTED = tuple(f"1.{minor}" for minor in range(30, 38))
"""The versions of Kubernetes that the README nominations."""
OLDER = tuple(f"1.{minor}" for minor in range(25, 30))
"""Those for which there is an overlay."""

PROJECT = tomllib.loads((MANIFESTS.parent / "pyproject.toml").read_text())


def check_strictly(each: dict[str, Any], version: str) -> None:
    """As the API server checks what `kubectl apply` sends: an unknown field is an error, whatever the kind."""
    described = foreign.SCHEMAS.get((each["apiVersion"], each["kind"]))
    if described is None:
        _check_known(json.dumps(each, sort_keys=True), version)
        return
    assert violations(of_object(described), each) == []


@functools.cache
def _check_known(text: str, version: str) -> None:
    """Once for all overlays that have the object: the package reads all of Kubernetes' definitions each time."""
    kubernetes_validate.validate(json.loads(text), version, strict=True)


def nulls(value: Any, path: str) -> Iterator[str]:
    """A field without a value is a slip of the pen: after a comma in an unquoted text, YAML reads on as the next field."""
    if value is None:
        yield path
    elif isinstance(value, dict):
        for name, one_value in value.items():
            yield from nulls(one_value, f"{path}.{name}")
    elif isinstance(value, list):
        for at, one_value in enumerate(value):
            yield from nulls(one_value, f"{path}[{at}]")


@pytest.mark.parametrize("version", SUPPORTED)
@pytest.mark.parametrize("overlay", [entry for entry in WHOLE if entry != BEFORE_1_30])
def test_every_object_is_as_kubernetes_has_it(overlay, version):
    for each in rendered(overlay):
        check_strictly(each, version)


@pytest.mark.parametrize("version", [*OLDER, *SUPPORTED])
def test_older_versions_have_an_overlay(version):
    for each in rendered(BEFORE_1_30):
        check_strictly(each, version)


@pytest.mark.parametrize("version", SUPPORTED)
def test_every_file_is_as_kubernetes_has_it(version):
    """As the one above, for machines without kustomize."""
    for folder in (
        "base",
        "examples",
        "components/monitoring",
        "components/refuse",
        "components/regroup",
        "overlays/tls-cert-manager",
    ):
        for each in files(folder):
            check_strictly(each, version)


@pytest.mark.parametrize("component", [entry.name for entry in sorted((MANIFESTS / "components").iterdir())])
def test_bypass_goes_together_with_each_component(component, overlay_of):
    objects = overlay_of("../overlays/bypass", f"../components/{component}")
    enforcer = one(objects, "DaemonSet", "numakin-enforcer")["spec"]["template"]["spec"]["containers"][0]
    assert {"--mode=bypass", "--cri-socket=/run/containerd/containerd.sock"} <= {*enforcer["args"]}
    assert ("--extender-ca=/etc/numakin/ca/ca.crt" in enforcer["args"]) == (component != "plaintext")


def test_nothing_is_left_empty_by_a_slip():
    for path in sorted(MANIFESTS.rglob("*.yaml")):
        for each in yaml.safe_load_all(path.read_text()):
            assert not [*nulls(each, path.name)]


def test_the_supported_versions_are_told():
    text = (MANIFESTS.parent / "README.md").read_text()
    assert f"Kubernetes {SUPPORTED[0]} to {SUPPORTED[-1]}" in text
    assert f"{OLDER[0]} to {OLDER[-1]}" in text


def test_the_extender_takes_its_arguments(objects):
    config = load(arguments(objects, "Deployment", "numakin-extender"), {})
    assert (config.listen.rpartition(":")[2], config.grpc_listen) == ("8080", "0.0.0.0:8081")
    secured = config.own_ca or bool(config.tls_client_ca)
    assert secured == (config.listen == "0.0.0.0:8080"), "without TLS to its own pod alone"


def test_the_extender_believes_the_enforcers_account_alone(objects):
    config = load(arguments(objects, "Deployment", "numakin-extender"), {})
    enforcer = one(objects, "DaemonSet", "numakin-enforcer")
    account = enforcer["spec"]["template"]["spec"]["serviceAccountName"]
    assert config.enforcer_account == f"{enforcer['metadata']['namespace']}:{account}"


def test_the_enforcer_takes_its_arguments(objects):
    command, *options = arguments(objects, "DaemonSet", "numakin-enforcer")
    assert command == "run"
    config = configured(run_options().parse_args(options))
    assert config.node_name == "node-1"
    assert config.metrics_listen == "0.0.0.0:16862"


def test_the_programs_listen_where_the_containers_and_the_service_say(objects):
    deployment = one(objects, "Deployment", "numakin-extender")["spec"]["template"]["spec"]["containers"][0]
    ports = {each["name"]: each["containerPort"] for each in deployment["ports"]}
    assert ports == {"http": 8080, "grpc": 8081, "health": 8082, "web": 8083}
    config = load(arguments(objects, "Deployment", "numakin-extender"), {})
    assert (config.health_listen, config.web_listen) == ("0.0.0.0:8082", "0.0.0.0:8083")
    services = [one(objects, "Service", name)["spec"]["ports"] for name in (ASKED, TOLD)]
    assert [[(each["targetPort"], each["port"]) for each in service] for service in services] == [
        [("http", 8080), ("web", 8083)],
        [("grpc", 8081)],
    ]


def test_every_replica_is_told_by_every_enforcer_before_it_is_asked(objects):
    deployment = one(objects, "Deployment", "numakin-extender")["spec"]
    assert 2 <= deployment["replicas"] <= MOST_REPLICAS
    received = one(objects, "Service", TOLD)
    assert received["spec"]["clusterIP"] == "None"
    assert received["spec"]["publishNotReadyAddresses"]
    dialled = f"--extender={TOLD}.{received['metadata']['namespace']}.svc:8081"
    assert dialled in arguments(objects, "DaemonSet", "numakin-enforcer")
    probe = deployment["template"]["spec"]["containers"][0]["readinessProbe"]
    assert probe["httpGet"]["path"] == "/readyz"
    assert load([], {}).readiness_timeout > RESOLVE_EVERY_S + LONGEST_WAIT_S


def test_kube_scheduler_is_sent_to_the_service(objects):
    service = one(objects, "Service", "numakin-extender")["metadata"]
    for path in sorted((MANIFESTS.parent / "scheduler-config").glob("*.yaml")):
        for extender in yaml.safe_load(path.read_text())["extenders"]:
            assert f"//{service['name']}.{service['namespace']}.svc:8080" in extender["urlPrefix"], path


def test_every_selector_selects_its_pods(objects):
    labels = [
        each["spec"]["template"]["metadata"]["labels"]
        for each in objects
        if each["kind"] in ("Deployment", "DaemonSet")
    ]
    for each in objects:
        spec = each.get("spec", {})
        for selector in (spec.get("selector"), spec.get("podSelector")):
            if selector:
                wanted = selector.get("matchLabels", selector)
                assert sum(wanted.items() <= one_pods.items() for one_pods in labels) == 1, each["metadata"]["name"]


def test_every_volume_is_there_and_is_used(objects):
    for spec in pod_specs(objects):
        volumes = {each["name"] for each in spec["volumes"]}
        assert {each["name"] for each in spec["containers"][0]["volumeMounts"]} == volumes


def test_files_that_the_programs_are_pointed_at_are_mounted(objects):
    for kind, name in (("Deployment", "numakin-extender"), ("DaemonSet", "numakin-enforcer")):
        mounts = one(objects, kind, name)["spec"]["template"]["spec"]["containers"][0]["volumeMounts"]
        folders = tuple(each["mountPath"] + "/" for each in mounts)
        for argument in arguments(objects, kind, name):
            path = argument.partition("=")[2]
            if path.startswith("/"):
                assert (path + "/").startswith(folders), argument


def test_probes_and_policies_name_ports_that_exist(objects):
    named = {port["name"] for spec in pod_specs(objects) for port in spec["containers"][0]["ports"]}
    for spec in pod_specs(objects):
        for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
            if probe in spec["containers"][0]:
                assert spec["containers"][0][probe]["httpGet"]["port"] in named
    for each in objects:
        if each["kind"] == "NetworkPolicy":
            ports = [port["port"] for rule in each["spec"].get("ingress", []) for port in rule["ports"]]
            assert set(ports) <= named


def test_enforcers_may_ask_for_names_where_dns_pods_listen_on_openshift_too():
    """A policy goes by the port of the pods, and not of their Service."""
    policy = one(files(), "NetworkPolicy", "numakin-enforcer")["spec"]["egress"]
    open_to_all = {(port["port"], port["protocol"]) for rule in policy if "to" not in rule for port in rule["ports"]}
    assert open_to_all == {(port, protocol) for port in (53, 5353) for protocol in ("TCP", "UDP")}


def test_one_enforcer_per_node_at_all_times(objects):
    strategy = one(objects, "DaemonSet", "numakin-enforcer")["spec"]["updateStrategy"]["rollingUpdate"]
    assert strategy == {"maxSurge": 0, "maxUnavailable": 1}


def test_draining_the_extenders_node_is_never_blocked():
    """Though no replica gets ready."""
    budget = one(files(), "PodDisruptionBudget", "numakin-extender")["spec"]
    assert (budget["maxUnavailable"], budget["unhealthyPodEvictionPolicy"]) == (1, "AlwaysAllow")


def test_all_pods_come_onto_nodes_whose_system_they_are_for(objects):
    """The Windows nodes of some clusters have no taint."""
    assert [spec["nodeSelector"]["kubernetes.io/os"] for spec in pod_specs(objects)] == ["linux", "linux"]


def test_the_extender_serves_on_while_the_cluster_hears_that_it_ends():
    """Within what the kubelet grants for it and for the requests under way."""
    spec = one(files(), "Deployment", "numakin-extender")["spec"]["template"]["spec"]
    slept = spec["containers"][0]["lifecycle"]["preStop"]["sleep"]["seconds"]
    assert slept > 1
    assert slept + DRAIN_S + STOP_SECONDS < spec.get("terminationGracePeriodSeconds", 30)


def test_the_trial_runs_on_labelled_nodes_alone():
    spec = one(rendered("overlays/trial"), "DaemonSet", "numakin-enforcer")["spec"]["template"]["spec"]
    assert spec["nodeSelector"] == {"kubernetes.io/os": "linux", "numakin.io/trial": "true"}


def test_the_pod_monitor_scrapes_ports_that_exist():
    monitor = one(files("components/monitoring"), "PodMonitor", "numakin")
    named = {port["name"] for spec in pod_specs(files()) for port in spec["containers"][0]["ports"]}
    assert {each["port"] for each in monitor["spec"]["podMetricsEndpoints"]} <= named


def test_the_affinity_groups_columns_lead_somewhere():
    definition = one(files(), "CustomResourceDefinition", "affinitygroups.numakin.io")
    assert definition["metadata"]["name"] == "{plural}.{group}".format(
        plural=definition["spec"]["names"]["plural"], group=definition["spec"]["group"]
    )
    (version,) = definition["spec"]["versions"]
    whole = of_object(version["schema"]["openAPIV3Schema"])
    for column in version["additionalPrinterColumns"]:
        below: Any = whole
        for step in re.sub(r"\[.*\]", ".[]", column["jsonPath"]).split(".")[1:]:
            if step != "[]":
                assert step in below.get("properties", ()) or OPEN in below, column
            below = below["items"] if step == "[]" else below.get("properties", {}).get(step, {OPEN: True})


def test_the_images_have_the_programs_and_what_they_import():
    for name, base in (("extender", "numakin-extender"), ("enforcer", "numakin-enforcer")):
        text = (MANIFESTS / "images" / name / "Dockerfile").read_text()
        assert f'ENTRYPOINT ["{base}"]' in text
        for copied in re.findall(r"^COPY (?!--from)(.+) \S+$", text, re.MULTILINE):
            assert all((MANIFESTS.parent / source).exists() for source in copied.split()), copied
        packages = re.findall(r"^COPY (\S+) /src/\1$", text, re.MULTILINE)
        assert sorted(packages) == sorted(["numakin", name])


def test_the_enforcers_image_has_the_packages_that_it_imports():
    wanted = PROJECT["project"]["optional-dependencies"]["enforcer"]
    listed = {re.split("[<>=]", requirement)[0] for requirement in wanted}
    modules = {"google": "protobuf", "grpc": "grpcio", "prometheus_client": "prometheus-client", "rich": "rich"}
    imported = set()
    for folder in ("enforcer", "numakin/placement", "numakin/process", "numakin/wire"):
        for path in (MANIFESTS.parent / folder).rglob("*.py"):
            imported |= set(re.findall(r"^\s*(?:from|import) (\w+)", path.read_text(), re.MULTILINE))
    assert {package for module, package in modules.items() if module in imported} == listed
    foreign = {"flask", "httptools", "kubernetes", "msgspec", "numpy", "scipy"}
    assert not imported & foreign

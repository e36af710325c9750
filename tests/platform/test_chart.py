"""The Helm chart: what it renders is valid for Kubernetes, and gives each process its own keys and no more.

Templates are rendered with Go's own engine and sprig (Debian: golang-go, golang-github-masterminds-sprig-dev,
golang-k8s-sigs-yaml-dev); objects are checked against the schemas of Kubernetes that kubernetes-validate brings."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml

from apps.bus.enums import WORKER_OF
from apps.bus.workers import Worker
from silas_platform.telemetry.collectors import DATABASE_GAUGES
from silas_platform.up.environment import ROOT
from tests.programs import PROGRAMS, do_without

CHART = ROOT / "deploy" / "helm" / "silas"
GO_LIBRARIES = Path("/usr/share/gocode")
KUBERNETES = "1.33"
REQUIRED = {"host": "chat.example.com", "files": {"bucket": "visitors"}}
WORKERS = {"work", "parse", "upkeep"}
EVERYTHING: dict[str, Any] = REQUIRED | {
    "files": {"bucket": "visitors", "credentialsSecret": "bucket"},
    "image": {"pullSecrets": [{"name": "registry"}]},
    "settings": {"SILAS_SOCKETS": 5, "SILAS_MCP_PRIVATE": True},
    "ingress": {"className": "nginx", "annotations": {"a/b": "c"}, "tlsSecret": "tls"},
    "nodeSelector": {"pool": "silas"},
    "tolerations": [{"key": "silas", "operator": "Exists"}],
    "trust": {"storageClass": "shared"},
    "maintenance": {"enabled": True},
    "metricsSecret": "metrics",
    **{queue: {"autoscaling": {"enabled": True}} for queue in ("trusted", *sorted(WORKERS))},
}


class Once(yaml.SafeLoader):
    """Takes no key twice: which of both would hold is up to the reader."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        names = [self.construct_object(name, deep=deep) for name, _ in node.value]
        assert len(names) == len(set(names)), names
        return super().construct_mapping(node, deep=deep)


@pytest.fixture(scope="module")
def renderer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not (shutil.which("go") and (GO_LIBRARIES / "src/github.com/Masterminds/sprig").exists()):
        do_without("needs Debian's golang-go, golang-github-masterminds-sprig-dev, golang-k8s-sigs-yaml-dev", PROGRAMS)
    program = tmp_path_factory.mktemp("chart") / "render"
    environment = os.environ | {
        "GO111MODULE": "off",
        "GOPATH": str(GO_LIBRARIES),
        "GOCACHE": str(program.parent / "go"),
    }
    source = ROOT / "tests" / "platform" / "chart" / "render.go"
    subprocess.run(["go", "build", "-o", program, source], env=environment, check=True)
    return program


def merged(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    return base | {
        key: merged(base[key], value) if isinstance(value, dict) and isinstance(base.get(key), dict) else value
        for key, value in over.items()
    }


def rendered(renderer: Path, values: dict[str, Any]) -> list[dict[str, Any]]:
    """Objects that the chart renders with `values` over its own.

    Raises jsonschema.ValidationError for values that the chart's schema refuses, CalledProcessError for templates."""
    whole = merged(yaml.safe_load((CHART / "values.yaml").read_text()), values)
    jsonschema.validate(whole, json.loads((CHART / "values.schema.json").read_text()))
    chart = {
        key[0].upper() + key[1:]: value for key, value in yaml.safe_load((CHART / "Chart.yaml").read_text()).items()
    }
    context = renderer.parent / "context.json"
    context.write_text(
        json.dumps({"Values": whole, "Chart": chart, "Release": {"Name": "silas", "Namespace": "n", "Revision": 1}})
    )
    text = subprocess.run([renderer, CHART, context], check=True, capture_output=True, text=True).stdout
    return [item for item in yaml.load_all(text, Loader=Once) if item]


def pods(objects: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {
        item["metadata"]["labels"]["app.kubernetes.io/component"]: item["spec"]["template"]["spec"]
        for item in objects
        if item["kind"] in ("Deployment", "Job")
    }


@pytest.mark.parametrize("values", [REQUIRED, EVERYTHING, REQUIRED | {"ingress": {"enabled": False}}])
def test_objects_match_the_schemas_of_kubernetes(renderer: Path, values: dict[str, Any]) -> None:
    objects = rendered(renderer, values)
    for item in objects:
        kubernetes_validate.validate(item, KUBERNETES, strict=True)
    names = [(item["kind"], item["metadata"]["name"]) for item in objects]
    assert len(names) == len(set(names))
    assert ("Ingress" in dict(names)) == values.get("ingress", {}).get("enabled", True)


def test_validation_refuses_a_field_that_kubernetes_does_not_know(renderer: Path) -> None:
    web = next(item for item in rendered(renderer, REQUIRED) if item["kind"] == "Deployment")
    web["spec"]["replcas"] = 3
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(web, KUBERNETES, strict=True)


@pytest.mark.parametrize("values", [{}, {"host": "chat.example.com"}, {"files": {"bucket": "visitors"}}])
def test_values_without_host_or_bucket_are_refused(renderer: Path, values: dict[str, Any]) -> None:
    with pytest.raises(jsonschema.ValidationError):
        rendered(renderer, values)


def test_each_process_mounts_its_own_secret_alone(renderer: Path) -> None:
    mounted = {
        name: [volume["secret"]["secretName"] for volume in pod.get("volumes", []) if "secret" in volume]
        for name, pod in pods(rendered(renderer, REQUIRED)).items()
    }
    assert mounted == {
        "web": ["silas-web"],
        "trusted": ["silas-web"],
        **{queue: ["silas-workers"] for queue in WORKERS},
        "migrations": ["silas-migrations"],
        "beat": [],
    }


def test_processes_read_the_files_that_compose_gives_them(renderer: Path) -> None:
    services = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]
    of_compose = {
        "web": "web",
        "trusted": "trusted",
        "work": "worker",
        "parse": "parser",
        "upkeep": "upkeep",
        "beat": "beat",
    }
    for name, pod in pods(rendered(renderer, REQUIRED)).items():
        service = services[of_compose.get(name, "migrate")]
        given = told(pod)
        files = {value.rsplit("/", 1)[1] for key, value in given.items() if value.startswith("/run/secrets/")}
        assert files == set(service.get("secrets", [])), name
        assert {key for key in service["environment"] if key.endswith("_KEY_FILE")} <= set(given), name
        command = pod["containers"][0].get("command", [])
        if name != "migrations":
            assert [word for word in command if "schedule" not in word] == service.get("command", []), name


def test_workers_cannot_write_what_they_trust(renderer: Path) -> None:
    read_only = {
        name: mount.get("readOnly", False)
        for name, pod in pods(rendered(renderer, REQUIRED)).items()
        for mount in pod["containers"][0].get("volumeMounts", [])
        if mount["name"] == "trust"
    }
    assert read_only == {"web": False, "trusted": False, **dict.fromkeys(WORKERS, True)}


def test_pods_gain_no_privilege_and_sandboxes_have_a_user_namespace(renderer: Path) -> None:
    for name, pod in pods(rendered(renderer, REQUIRED)).items():
        security = pod["containers"][0]["securityContext"]
        assert security["allowPrivilegeEscalation"] is False and security["capabilities"] == {"drop": ["ALL"]}
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["automountServiceAccountToken"] is False
        sandboxes = name in {"web", *WORKERS}
        assert (pod.get("hostUsers") is False) == sandboxes == (security.get("procMount") == "Unmasked"), name


def test_every_lasting_process_is_probed_and_every_replicated_one_has_a_disruption_budget(renderer: Path) -> None:
    objects = rendered(renderer, EVERYTHING)
    deployments = {item["metadata"]["name"] for item in objects if item["kind"] == "Deployment"}
    budgets = {item["metadata"]["name"] for item in objects if item["kind"] == "PodDisruptionBudget"}
    scaled = {item["spec"]["scaleTargetRef"]["name"] for item in objects if item["kind"] == "HorizontalPodAutoscaler"}
    assert deployments == {f"silas-{name}" for name in ("web", "trusted", *WORKERS, "beat", "maintenance")}
    assert budgets == scaled == deployments - {"silas-beat", "silas-maintenance"}
    probed = {name for name, pod in pods(objects).items() if "livenessProbe" in pod["containers"][0]}
    assert probed == {"web", "trusted", *WORKERS, "beat"}


def test_web_pods_are_replaced_one_by_one_without_a_gap(renderer: Path) -> None:
    web = next(
        item
        for item in rendered(renderer, REQUIRED)
        if item["kind"] == "Deployment" and item["metadata"]["name"] == "silas-web"
    )
    assert web["spec"]["strategy"]["rollingUpdate"] == {"maxUnavailable": 0, "maxSurge": 1}
    container = web["spec"]["template"]["spec"]["containers"][0]
    assert container["lifecycle"]["preStop"] == {"sleep": {"seconds": 10}}
    assert "readinessProbe" in container and "startupProbe" in container


def test_migrations_run_before_pods_of_a_new_version(renderer: Path) -> None:
    job = next(item for item in rendered(renderer, REQUIRED) if item["kind"] == "Job")
    assert job["metadata"]["annotations"]["helm.sh/hook"] == "pre-install,pre-upgrade"


def told(pod: dict[str, Any]) -> dict[str, str]:
    return {variable["name"]: variable.get("value", "") for variable in pod["containers"][0].get("env", [])}


def test_only_workers_read_the_pinned_key_that_the_first_web_pod_writes(renderer: Path) -> None:
    """A process that names a file that does not exist yet refuses to start."""
    found = {name for name, pod in pods(rendered(renderer, EVERYTHING)).items() if "SILAS_ROOT_KEYS_FILE" in told(pod)}
    assert found == WORKERS


def test_maintenance_pod_has_what_backup_restore_and_upgrade_need(renderer: Path) -> None:
    pod = pods(rendered(renderer, EVERYTHING | {"maintenance": {"enabled": True, "tag": "0.2.0"}}))["maintenance"]
    (container,) = pod["containers"]
    assert container["image"] == "silas-platform:0.2.0"
    assert container["command"] == ["sleep", "infinity"]
    assert "ports" not in container
    files = {value.rsplit("/", 1)[1] for value in told(pod).values() if value.startswith("/run/secrets/")}
    assert files == {"secret_key", "database_url", "database_owner_url", "signing_key", "secrets_key"}
    (secrets,) = [volume["projected"]["sources"] for volume in pod["volumes"] if "projected" in volume]
    web, migrations = (source["secret"] for source in secrets)
    assert web == {"name": "silas-web"}
    assert migrations == {
        "name": "silas-migrations",
        "items": [{"key": "database_owner_url", "path": "database_owner_url"}],
    }
    (trust,) = [mount for mount in container["volumeMounts"] if mount["name"] == "trust"]
    assert not trust.get("readOnly")
    assert told(pod)["SILAS_CHECKPOINTS"].startswith(trust["mountPath"])
    assert told(pod)["SILAS_FILES_BUCKET"] == "visitors"
    assert set(told(pod)) >= set(told(pods(rendered(renderer, EVERYTHING))["trusted"]))


@pytest.mark.parametrize("values", [REQUIRED, EVERYTHING])
def test_everything_else_is_stopped_for_a_restore(renderer: Path, values: dict[str, Any]) -> None:
    objects = rendered(renderer, values | {"maintenance": {"enabled": True, "stop": True}})
    replicas = {
        item["metadata"]["labels"]["app.kubernetes.io/component"]: item["spec"].get("replicas")
        for item in objects
        if item["kind"] == "Deployment"
    }
    assert replicas == {**dict.fromkeys(("web", "trusted", *WORKERS, "beat"), 0), "maintenance": 1}
    assert [item for item in objects if item["kind"] == "HorizontalPodAutoscaler"] == []
    for item in objects:
        kubernetes_validate.validate(item, KUBERNETES, strict=True)


def test_no_pod_waits_for_maintenance_unless_one_is_asked_for(renderer: Path) -> None:
    objects = rendered(renderer, REQUIRED)
    assert "maintenance" not in pods(objects)
    replicas = {
        item["metadata"]["name"]: item["spec"].get("replicas") for item in objects if item["kind"] == "Deployment"
    }
    assert replicas["silas-beat"] == 1
    assert replicas["silas-work"] == 2
    assert replicas["silas-web"] is None


def test_workers_scale_by_the_queues_that_they_serve(renderer: Path) -> None:
    served: dict[str, set[str]] = {}
    for item in rendered(renderer, EVERYTHING):
        for metric in item["spec"].get("metrics", []) if item["kind"] == "HorizontalPodAutoscaler" else []:
            if metric["type"] == "External":
                counted = metric["external"]["metric"]
                assert counted["name"] == "silas_queue_due" and "queue_due" in DATABASE_GAUGES
                worker = item["metadata"]["labels"]["app.kubernetes.io/component"]
                served[worker] = set(counted["selector"]["matchExpressions"][0]["values"])
    assert served == {
        worker.value: {queue.value for queue, serving in WORKER_OF.items() if serving == worker} for worker in Worker
    }


def test_web_alone_knows_the_token_of_metrics(renderer: Path) -> None:
    found = [name for name, pod in pods(rendered(renderer, EVERYTHING)).items() if "SILAS_METRICS_TOKEN" in told(pod)]
    assert found == ["web"]
    names = [variable["name"] for variable in pods(rendered(renderer, EVERYTHING))["web"]["containers"][0]["env"]]
    assert names.index("POD_IP") < names.index("ALLOWED_HOSTS"), "Kubernetes expands what it has read already"
    assert "SILAS_METRICS_TOKEN" not in str(rendered(renderer, REQUIRED))

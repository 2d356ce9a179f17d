"""A plan as Kubernetes manifests: a LeaderWorkerSet with one pod a node, and the service in front of the leaders."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

import yaml

from k3lib.engines.layout import Hardware
from k3lib.errors import InputError
from k3lib.launch.commands import node_command, rows_for
from k3lib.launch.place import Place, features_of, shape_of
from k3lib.launch.records import Launch, Shell
from k3lib.launch.shell import script

NAME = "k3"
MOUNT = "/models"
SET = "leaderworkerset.sigs.k8s.io"
# The names under which a pod of a LeaderWorkerSet finds its leader and its own place.
LEADER, RANK = Shell("$LWS_LEADER_ADDRESS"), Shell("$LWS_WORKER_INDEX")


class _Text(str):
    """Text of several lines, written as it reads."""


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        """Every part in full: people copy single ones."""
        return True


_Dumper.add_representer(_Text, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|"))


def manifests(launch: Launch, place: Place, image: str = "", hardware: Hardware | None = None) -> str:
    """The manifests as YAML, with what only the site can know as remarks at the top.

    image: of the engine, empty for a placeholder. Raises InputError where there are no commands, or nodes join by Ray.
    """
    plan = launch.plan
    if plan is None:
        raise InputError(f"--kubernetes: no manifest of {launch.start.label} for K3 is public that could be followed; "
                         "they are written for vllm and sglang")  # fmt: skip
    if launch.reason:
        raise InputError(f"--kubernetes: {launch.reason}")
    if place.executor == "ray":
        raise InputError("--kubernetes: nodes find each other natively here. Leave out --executor ray")
    if place.model_path.startswith("/") and PurePosixPath(place.model_path).parent == PurePosixPath("/"):
        raise InputError(f"--model-path {place.model_path}: in a pod it must lie in a folder, as /models/Kimi-K3")
    if place.hosts:
        raise InputError("--kubernetes: pods have names of their own. Leave out --hosts")
    features, shape = features_of(plan, place, hardware), shape_of(plan)
    rows = rows_for(launch.start.engine, features)
    pods = {o.row.name: o.value or "" for o in launch.pods}
    if features["copies"] == "many_a_node":  # a pod sees its own cards only
        rows = [row for row in rows if row.value != "@cards"]
        features = {**features, "copies": "one_a_node"}
    templates = {}
    for role, node in (("leaderTemplate", 0), ("workerTemplate", 1)):
        if node < shape.nodes:
            command = node_command(plan, place, rows, features, [LEADER] * shape.nodes, 0, node, RANK if node else None)
            templates[role] = _pod(launch, place, script(command), image, shape.cards, pods, leads=node == 0)
    templates.setdefault("workerTemplate", templates["leaderTemplate"])
    group = {
        "apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "metadata": {"name": NAME},
        "spec": {"replicas": launch.copies, "leaderWorkerTemplate": {
            "size": shape.nodes, "restartPolicy": "RecreateGroupOnPodRestart", **templates}},
    }  # fmt: skip
    front = {
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": NAME},
        "spec": {"selector": {f"{SET}/name": NAME, f"{SET}/worker-index": "0"},
                 "ports": [{"port": launch.start.port, "targetPort": launch.start.port}]},
    }  # fmt: skip
    text = yaml.dump_all([group, front], Dumper=_Dumper, sort_keys=False, width=1000)
    return "\n".join([*_head(launch, image), text])


def _head(launch: Launch, image: str) -> list[str]:
    """What to look after before it is applied."""
    lines = [f"# {launch.name}. Needs the LeaderWorkerSet controller and a volume claim '{NAME}-weights' that all "
             "nodes may read."]  # fmt: skip
    if not image:
        lines.append("# The image is a placeholder: name yours with --image.")
    if launch.nodes > 1:
        lines.append(
            "# The pods need the network cards of the nodes: your device plug-in for RDMA, or the host's network."
        )
    return [*lines, *(f"# {row.name}: {row.value}: {row.reason}" for row in launch.site)]


def _pod(launch: Launch, place: Place, text: str, image: str, cards: int, pods: dict[str, str], *,
         leads: bool) -> dict[str, Any]:  # fmt: skip
    start = launch.start
    folder = str(PurePosixPath(place.model_path).parent) if place.model_path.startswith("/") else ""
    container: dict[str, Any] = {
        "name": start.engine, "image": image or f"registry.example/{start.engine}:{start.version}",
        "command": ["/bin/sh", "-c"], "args": [_Text(text + "\n")],
        "resources": {"limits": {"nvidia.com/gpu": cards}},
        "volumeMounts": [{"name": "weights", "mountPath": folder or MOUNT, "readOnly": bool(folder)},
                         {"name": "shm", "mountPath": "/dev/shm"}],  # noqa: S108 - the pod's, not ours
    }  # fmt: skip
    if not folder:  # the engine then fetches the files by name into the volume
        container["env"] = [{"name": "HF_HOME", "value": MOUNT}]
    if leads:
        container["ports"] = [{"containerPort": start.port}]
        look = {"httpGet": {"path": start.health, "port": start.port}, "periodSeconds": int(pods["startup_period_s"])}
        container["startupProbe"] = {**look, "failureThreshold": int(pods["startup_tries"])}
        container["readinessProbe"] = look
    return {"spec": {"containers": [container], "volumes": [
        {"name": "weights", "persistentVolumeClaim": {"claimName": f"{NAME}-weights"}},
        {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": pods["shm"]}}]}}  # fmt: skip

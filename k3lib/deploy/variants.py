"""Kimi K3 in other formats and with fewer experts: what it weighs by the account, as published, and where it fits."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from types import MappingProxyType

from k3lib.account import symbols as s
from k3lib.deploy import ledger as led
from k3lib.deploy.caches import Settings
from k3lib.deploy.inverse import fewest_cards
from k3lib.deploy.plan import Plan
from k3lib.engines.layout import Cluster
from k3lib.engines.rules import stage_counts
from k3lib.errors import InputError
from k3lib.facts.tables import Grade
from k3lib.facts.variants import Variant, variant, variants
from k3lib.models.model import Model, load_model
from k3lib.models.weights import weight_account
from k3lib.units import BITS_PER_BYTE

MODEL = "kimi-k3"


@dataclass(frozen=True)
class Size:
    """Bytes of a variant. computed: by the account with the rest as released, None for a form it does not know.

    published, low, high: None where nobody published a size. difference: published over computed, less one.
    bits_per_weight: of the published size, else of the computed one, over all weights of the variant. rest_bits: bits
    that the published size leaves for each weight outside the routed experts, None unless experts were pruned.
    """

    variant_id: str
    label: str
    kind: str
    experts: int
    params: int
    computed: int | None
    published: int | None
    low: int | None
    high: int | None
    grade: Grade
    difference: float | None
    bits_per_weight: float
    rest_bits: float | None

    @property
    def bytes(self) -> int:
        """The published size, or else the computed one."""
        return self.published if self.published is not None else self.computed or 0


def with_experts(model: Model, experts: int) -> Model:
    """The model with fewer routed experts in every layer, and as many rows fewer in its routers.

    Raises InputError unless a token finds its experts among them and the model has as many.
    """
    if s.experts not in model.values:
        raise InputError(f"{model.name} has no routed experts to prune")
    most, least = model.values[s.experts], model.values[s.experts_per_token]
    if not least <= experts <= most:
        raise InputError(f"experts = {experts}: must be from {least} that a token uses to {most} that {model.name} has")
    values = MappingProxyType({**model.values, s.experts: experts})
    return replace(model, name=f"{model.name} with {experts} experts", values=values, checkpoint=None)


def with_layers(model: Model, layers: int) -> Model:
    """The first layers of the model, with its tables and its head. Raises InputError for more than there are."""
    if not 1 <= layers <= len(model.mixers):
        raise InputError(f"layers = {layers}: must be from 1 to {len(model.mixers)} that {model.name} has")
    counts = stage_counts(model, range(layers))
    values = MappingProxyType({**model.values, **counts})
    return replace(model, name=f"{layers} layers of {model.name}", values=values, checkpoint=None,
                   mixers=model.mixers[:layers], mlps=model.mlps[:layers])  # fmt: skip


def model_of(row: Variant) -> Model | None:
    """A variant as the account sees it, its rest as in the format's own choice; None for a form it does not know."""
    return _model(row.form, row.experts) if row.form else None


@lru_cache(maxsize=64)
def _model(form: str, experts: int) -> Model:
    model = load_model(MODEL) if form == "mxfp4" else load_model(MODEL, form)
    return model if experts == model.values[s.experts] else with_experts(model, experts)


@lru_cache(maxsize=64)
def size(name: str) -> Size:
    """The size of a variant. Raises InputError with the near name."""
    row = variant(name)
    model = model_of(row)
    account = weight_account(model or load_model(MODEL))
    computed = account.bytes if model else None
    rest_bits = None
    if row.kind == "pruned" and row.published_bytes is not None:
        left = row.published_bytes - account.routed_bytes
        rest_bits = left * BITS_PER_BYTE / (account.params - account.routed_params)
    known = row.published_bytes if row.published_bytes is not None else computed
    return Size(row.variant_id, row.label, row.kind, row.experts, account.params, computed, row.published_bytes,
                row.low if row.low is not None else row.published_bytes,
                row.high if row.high is not None else row.published_bytes, row.grade,
                row.published_bytes / computed - 1 if row.published_bytes is not None and computed else None,
                (known or 0) * BITS_PER_BYTE / account.params, rest_bits)  # fmt: skip


def sizes() -> tuple[Size, ...]:
    """The sizes of all variants, in the order of the table."""
    return tuple(size(name) for name in variants())


@dataclass(frozen=True)
class Fit:
    """Fewest cards of a kind. cards: None where it does not fit on `most`, which were tried.

    lower_bound: whether only the bytes of the file were set against the memory, so that a real layout needs as many or
    more. layout: of the plan that fits, empty for a lower bound. usable_low, usable_high: memory of a card beside the
    reserve, in B, for a lower bound. in_servers: cards when whole servers are bought.
    """

    variant_id: str
    device: str
    cards: int | None
    most: int
    lower_bound: bool
    layout: str = ""
    usable_low: float = 0.0
    usable_high: float = 0.0
    per_server: int = 8

    @property
    def in_servers(self) -> int | None:
        """Cards in whole servers, None where it does not fit."""
        return None if self.cards is None else -(-self.cards // self.per_server) * self.per_server


RESERVES = ("runtime and communicators", "activations", "attention-residual rows", "captured graphs",
            "kernel workspace")  # fmt: skip


def reserve_lines(plan: Plan) -> tuple[led.Line, ...]:
    """The lines of a plan's tightest stage that are neither weights nor caches."""
    return tuple(line for line in plan.stages[plan.tightest].lines if line.name in RESERVES)


def usable_bytes(plan: Plan) -> tuple[float, float]:
    """Memory of a card for weights and caches beside the reserve lines of a plan's tightest stage, low and high. B."""
    budget = plan.capacity * plan.utilisation
    inside = [line for line in reserve_lines(plan) if not line.outside]
    return budget - sum(line.high for line in inside), budget - sum(line.low for line in inside)


def fewest(name: str, device: str, settings: Settings, engine: str = "vllm", nodes: int = 16,
           per_server: int = 8) -> Fit:  # fmt: skip
    """Fewest cards that hold a variant, by the ledger where the account knows its form, else by its bytes.

    Where the file is smaller than the account's model of it (a rest in fewer bits), the ledger is still the account's.
    Raises InputError for an unknown variant or device.
    """
    row = variant(name)
    model = model_of(row)
    if model is None:
        return fewest_by_bytes(name, size(name).bytes, device, settings, engine, nodes, per_server)
    cluster = Cluster(nodes, per_server, device)
    plan = _held(row.form, row.experts, cluster, settings, engine)
    return Fit(name, device, plan.cluster.cards if plan else None, cluster.cards, False,
               str(plan.layout) if plan else "", per_server=per_server)  # fmt: skip


def fewest_by_bytes(name: str, file_bytes: float, device: str, settings: Settings, engine: str = "vllm",
                    nodes: int = 16, per_server: int = 8) -> Fit:  # fmt: skip
    """The lower bound for a file of so many bytes, whatever lies in it: memory beside the reserve of a fitting plan."""
    cluster = Cluster(nodes, per_server, device)
    plan = _held("mxfp4", variant("mxfp4").experts, cluster, settings, engine)
    if plan is None:
        return Fit(name, device, None, cluster.cards, True, per_server=per_server)
    low, high = usable_bytes(plan)
    cards = math.ceil(file_bytes / high)
    return Fit(name, device, cards if cards <= cluster.cards else None, cluster.cards, True, "", low, high, per_server)


@lru_cache(maxsize=256)
def _held(form: str, experts: int, cluster: Cluster, settings: Settings, engine: str) -> Plan | None:
    """The plan on the fewest cards of a form with so many experts."""
    return fewest_cards(_model(form, experts), cluster, engine, settings)


def fits(names: Iterable[str], devices: Iterable[str], settings: Settings) -> tuple[Fit, ...]:
    """Fewest cards of every variant on every device."""
    devices = tuple(devices)
    return tuple(fewest(name, device, settings) for name in names for device in devices)

"""Questions asked backwards: how long, how many, and how few cards."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from k3lib.deploy.caches import Settings
from k3lib.deploy.plan import ENGINES, Plan, capacity_bytes, make_plan
from k3lib.engines import vllm
from k3lib.engines.layout import Cluster, Hardware, Layout
from k3lib.errors import InputError
from k3lib.models.model import Model
from k3lib.models.weights import weight_account

SIZES = tuple(2**i for i in range(9))


def largest(holds: Callable[[int], bool], least: int, most: int) -> int:
    """The largest number from `least` to `most` for which it holds, by halving; 0 for none.

    What holds for a number must hold for all below it.
    """
    if least > most or not holds(least):
        return 0
    while least < most:
        middle = (least + most + 1) // 2
        least, most = (middle, most) if holds(middle) else (least, middle - 1)
    return least


def legal_layouts(model: Model, cards: int, engine_name: str) -> Iterator[Layout]:
    """Every layout that an engine accepts and that divides `cards`, with experts shared by width or as a set."""
    engine = ENGINES[engine_name]
    for tp in SIZES:
        for pp in range(1, len(model.mixers) + 1):
            if tp * pp > cards or cards % (tp * pp):
                continue
            for dp in SIZES:
                for ep in sorted({1, tp * dp if engine.paged else tp}):
                    layout = Layout(tp=tp, pp=pp, ep=ep, dp=dp)
                    taken = engine.cards(layout)
                    if taken <= cards and cards % taken == 0 and not engine.check(model, layout):
                        yield layout


def illegal_reason(model: Model, layout: Layout, engine_name: str) -> str:
    """Why an engine refuses a layout; empty where it does not."""
    reasons = ENGINES[engine_name].check(model, layout)
    return reasons[0] if reasons else ""


def largest_context(plan: Plan, concurrency: int) -> int:
    """Longest context that `concurrency` requests can have at once, in tokens; 0 where not even one block each fits.

    Solved on the paged pool directly: each request may take an equal share of the blocks. Unit: tokens.
    """
    if plan.caches is None or concurrency < 1:
        return 0
    caches = plan.caches
    longest = plan.model.longest or math.inf
    if not plan.engine.paged:
        tokens = caches.kv_tokens // concurrency if concurrency <= caches.max_running_requests else 0
        return int(min(tokens, longest))
    block = caches.block_tokens * plan.layout.dcp
    blocks = caches.kv_tokens_physical // block
    states = state_blocks(plan)
    return int(min(max(0, blocks // concurrency - states) * block, longest))


def largest_concurrency(plan: Plan, context: int) -> int:
    """How many requests of `context` tokens the caches hold at once, whatever the engine's limit on running ones."""
    if plan.caches is None or context < 1:
        return 0
    caches = plan.caches
    if not plan.engine.paged:
        return min(caches.max_running_requests, caches.kv_tokens // context)
    block = caches.block_tokens * plan.layout.dcp
    return (caches.kv_tokens_physical // block) // (math.ceil(context / block) + state_blocks(plan))


def state_blocks(plan: Plan) -> int:
    """Blocks of a request that hold its states, under an engine that pages them."""
    groups, _ = vllm.layer_groups(
        plan.model.mixers, [stage.layers for stage in plan.stages], plan.engine.rule("group_slack").value
    )
    return vllm.blocks_of_request(0, 1, 1, groups, plan.settings.prefix_caching, plan.settings.draft_tokens)


def best_state_ratio(plan: Plan, context: int) -> float:
    """SGLang's ratio of state pool to token pool at which neither limits requests of `context` tokens.

    Slots per request times slot bytes, over context times token bytes: the pools then run out together.
    """
    if plan.engine.paged or plan.caches is None:
        raise InputError("the ratio of two pools is a question for SGLang only")
    caches, ratio = plan.caches, plan.settings.state_ratio or plan.engine.rule("state_ratio").value
    if not caches.state_slots:
        raise InputError(f"{plan.model.name} keeps no state, so it has one pool")
    free = plan.stages[plan.tightest].free[0]
    slot = free * ratio / (1 + ratio) / caches.state_slots
    token = free / (1 + ratio) / caches.kv_tokens
    per_request = caches.state_slots / max(1, caches.max_running_requests)
    return per_request * slot / (context * token)


def fewest_cards(model: Model, cluster: Cluster, engine_name: str, settings: Settings) -> Plan | None:
    """The plan that fits on the fewest cards of a cluster's kind, or None; of equal ones that with the most tokens.

    Within a server 1, 2, 4 cards and so on, beyond one whole servers.
    """
    routed = weight_account(model).routed_bytes  # each is on some card, so fewer cards need not be tried
    memory = capacity_bytes(cluster.device)
    for smaller in smaller_clusters(cluster):
        if smaller.cards * memory < routed:
            continue
        plans = [p for p in plans_of(model, smaller, engine_name, settings) if p.fits]
        if plans:
            return max(plans, key=lambda p: p.caches.kv_tokens if p.caches else 0)
    return None


def smaller_clusters(cluster: Cluster) -> Iterator[Cluster]:
    """Parts of a cluster in growing size: some cards of one server, by powers of two, then whole servers."""
    for cards in SIZES:
        if cards < cluster.cards_per_node:
            yield Cluster(1, cards, cluster.device)
    for nodes in range(1, cluster.nodes + 1):
        yield replace(cluster, nodes=nodes)


MOST_NODES = 8


def nearest(plan: Plan, hardware: Hardware | None = None) -> Plan | None:
    """A plan that fits on as many nodes or more, or None: stages over nodes, tensor parallelism within one."""
    nodes = plan.cluster.nodes
    settings = replace(plan.settings, pp_partition=None, kv_memory_bytes=None)
    while nodes <= MOST_NODES:
        cluster = replace(plan.cluster, nodes=nodes)
        inside = [
            make_plan(plan.model, cluster, layout, plan.engine.name, settings, hardware)
            for layout in legal_layouts(plan.model, cluster.cards, plan.engine.name)
            if layout.tp <= cluster.cards_per_node and layout.dp == layout.ep == 1 and layout.pp == nodes
        ]
        fitting = [other for other in inside if other.fits]
        if fitting:
            return max(fitting, key=lambda other: other.layout.tp)
        nodes *= 2
    return None


def plans_of(model: Model, cluster: Cluster, engine_name: str, settings: Settings) -> Iterator[Plan]:
    """A plan for every legal layout that takes all cards of a cluster."""
    for layout in legal_layouts(model, cluster.cards, engine_name):
        if ENGINES[engine_name].cards(layout) == cluster.cards:
            yield make_plan(model, cluster, layout, engine_name, replace(settings, pp_partition=None))


@dataclass(frozen=True)
class Sweep:
    """plans: one a layout. concurrency: requests that the caches hold, shape (layouts, workloads), 0 where none."""

    plans: tuple[Plan, ...]
    concurrency: npt.NDArray[np.int64]


def sweep(model: Model, cluster: Cluster, engine_name: str, settings: Settings,
          contexts: npt.ArrayLike) -> Sweep:  # fmt: skip
    """The ledgers of every legal layout that takes all cards, and what each holds of every workload, in one call.

    contexts: tokens of a request, one a workload, shape (n,). Raises InputError for a context below 1.
    """
    lengths = np.atleast_1d(np.asarray(contexts, dtype=np.int64))
    if lengths.ndim != 1 or not np.all(lengths >= 1):
        raise InputError("contexts must be whole numbers of tokens from 1, in one dimension")
    plans = tuple(plans_of(model, cluster, engine_name, settings))
    held = np.zeros((len(plans), lengths.size), dtype=np.int64)
    for row, plan in zip(held, plans, strict=True):
        row[:] = held_by_length(plan, lengths)
    return Sweep(plans, held)


def held_by_length(plan: Plan, lengths: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Requests of each length that the caches of one copy hold at once, whatever vLLM's limit on running ones."""
    if plan.caches is None:
        return np.zeros_like(lengths)
    if not plan.engine.paged:
        return np.minimum(plan.caches.kv_tokens // lengths, plan.caches.max_running_requests)
    block = plan.caches.block_tokens * plan.layout.dcp
    return plan.caches.kv_tokens_physical // block // (-(-lengths // block) + state_blocks(plan))

"""How long the passes of a deployment take, stage by stage and term by term, at many sizes in one call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import erf, sqrt
from typing import Any

import numpy as np
import sympy as sp

from k3lib.account import passes as eq
from k3lib.account import symbols as s
from k3lib.deploy import constants as co
from k3lib.deploy import curves as cv
from k3lib.deploy import ledger as led
from k3lib.deploy.setup import PER_CARD, Constants, SetUp, constants, stage_values, unmodelled
from k3lib.errors import NoSpeedError
from k3lib.evaluate import Array, exact, prepared

__all__ = ["TERMS", "Constants", "PassTimes", "SetUp", "constants", "expected_most"]

# The card whose all-reduces were measured, by whose link others are scaled.
TABLE_LINK_DEVICE = "h200"
FIXED, DENSE, EXPERTS, KDA, ATTENTION, EXCHANGE, PROMPT, ENGINE = (
    "layers", "dense weights", "experts", "KDA", "attention", "all-reduce", "other work on prompts", "engine",
)  # fmt: skip
LAUNCH = "launching kernels"
GROUPED = "grouped-query attention"
TERMS = (FIXED, DENSE, EXPERTS, KDA, ATTENTION, GROUPED, EXCHANGE, PROMPT, ENGINE, LAUNCH)


class PassTimes:
    """Times of the passes of one set-up. Build once, call for many sizes and many constants."""

    def __init__(self, setup: SetUp) -> None:
        reason = unmodelled(setup.model)
        if reason:
            raise NoSpeedError(f"{setup.model.name}: the speed of its passes is not modelled; {reason}")
        self.setup = setup
        self.stages = stage_values(setup)
        v = setup.model.values
        self.moe = s.experts in v
        kinds = {EXPERTS: self.moe, KDA: s.layers_kda in v, ATTENTION: s.layers_mla in v, GROUPED: s.layers_gqa in v}
        self.named = {name for name in _equations().terms if kinds.get(name, True)}
        kinds_of = {id(stage): stage for stage in self.stages}  # equal stages are one object, and timed once
        self.kind = np.array([list(kinds_of).index(id(stage)) for stage in self.stages])
        self.kinds = list(kinds_of.values())
        self.stacked: dict[sp.Symbol, Any] = {
            x: np.array([[stage.get(x, 0.0)] for stage in self.kinds]) for stage in self.kinds for x in stage
        }
        device = setup.cluster.device
        first = self.stages[0]
        self.heads = max(1, round(first.get(s.kda_heads, 0) / setup.attention_cards))
        self.kda_us = cv.kda_prompt_us(device, self.heads) or 0.0
        self.sets = setup.engine.expert_groups(setup.layout)[0] if self.moe else 1
        self.most_over_mean = expected_most(self.sets)
        self.expert = self._expert() if self.moe else None
        self.expert_weights = self.floor_us = 0.0
        if self.moe:
            shares = setup.engine.expert_groups(setup.layout)[1]
            self.expert_weights = 3 * v.get(s.expert_input, v[s.hidden]) * v[s.expert_width] / shares
            self.floor_us = self._expert_floor()
        link, table_link = (
            cv.fact(setup.facts, d, "nvlink_unidirectional", "GB/s") for d in (device, TABLE_LINK_DEVICE)
        )
        self.link_ratio = (link or table_link or 1.0) / (table_link or 1.0)

    def _expert(self) -> cv.ExpertTime | None:
        setup, v = self.setup, self.setup.model.values
        kernel = cv.SCALED.get(setup.kernel, setup.kernel)
        if kernel == cv.ROOFLINE:
            return None
        share = self.stages[0][s.width_held] / v[s.expert_width]
        scale = v[s.expert_width] * v.get(s.expert_input, v[s.hidden]) / (cv.TABLE_WIDTH * cv.TABLE_INPUT)
        return cv.ExpertTime(kernel, setup.cluster.device, share, self.sets, scale)

    def expert_us(self, tokens: Array, c: Constants) -> Array:
        """Time of one used expert on one card by the tokens it gets, in us: measured, or by the limits of the card."""
        if self.expert is not None:
            return self.expert.at(tokens)
        first = self.stages[0]
        read = self.floor_us / c["stream_share"]
        work = 2 * self.expert_weights * tokens / (first[s.card_rate] * c["matrix_share"])
        return np.asarray((read**eq.CORNER + work**eq.CORNER) ** (1 / eq.CORNER), dtype=np.float64)

    def _expert_floor(self) -> float:
        """Time to read what a card holds of one expert at the full bandwidth, padding apart, in us."""
        v = self.setup.model.values
        routed = [a for a in self.setup.model.arrays if a.group in (led.ROUTED, led.SCALES)]
        stored, params = (sum(float(exact(getattr(a, n), v)) for a in routed) for n in ("bytes", "params"))
        return self.expert_weights * stored / params / self.stages[0][s.card_bandwidth]

    def exchange_us(self, cards: int, size: Array, c: Constants) -> Array:
        """One all-reduce over so many cards by its bytes, in us."""
        setup = self.setup
        if cards == 1:
            return np.zeros_like(size)
        # Recipes of vLLM for K3 on Hopper switch its own all-reduce off.
        usual = not (setup.engine.paged and co.architecture(setup.cluster.device) == "hopper")
        custom = setup.all_reduce == "custom" or (setup.all_reduce == "auto" and usual)
        name = ("custom, vLLM" if setup.engine.paged else "custom, SGLang") if custom else "nccl"
        if cards <= setup.domain:
            return cv.exchange_curve(name).at(size / self.link_ratio) * c["exchange_scale"]
        nodes = -(-cards // setup.domain)
        start = c["exchange_start_us"] * (1 + np.log2(nodes)) / 2  # a tree over the nodes, measured on two
        return np.asarray(start + size / (setup.nics * c["nic_rate"]), dtype=np.float64)

    def terms(
        self, c: Constants, decode: Array, prompt: Array, context: Array | float, seen: Array | float
    ) -> dict[str, Array]:
        """The terms of passes in us, each of shape (stages, n).

        decode, prompt: generated and prompt tokens of each pass, shape (n,). context: cached tokens of a generating
        request. seen: tokens that a prompt token attends to, on average. Both for all passes, or of shape (n,).
        """
        setup = self.setup
        n = len(decode)
        given: dict[sp.Symbol, Any] = {s.decode_tokens: decode, s.prompt_tokens: prompt, s.context_tokens: context,
                                       s.seen_tokens: seen, s.drafted_tokens: float(setup.drafts)}  # fmt: skip
        given |= {
            s.REGISTRY[name].symbol: c[name]
            for name in (*PER_CARD, "head_block", "skew", "layer_us", "step_us", "draft_us")
        }
        given |= {s.prompt_us: c["prompt_us"], s.kda_prompt_us: self.kda_us, s.launch_us: c["launch_us"],
                  s.most_over_mean: self.most_over_mean, s.token_groups: setup.token_groups,
                  s.context_shares: setup.layout.dcp}  # fmt: skip
        reading = prompt > 0
        given[s.expert_scale] = np.where(reading, c["kernel_prompt"], c["kernel_decode"])
        equations = _equations()
        if self.moe:
            tokens = _call(equations.routing, {**given, **self.stages[0]})[0]
            given[s.expert_us] = self.expert_us(tokens, c)
            given[s.expert_floor_us] = self.floor_us
        size = _call(equations.exchange, {**given, **self.stages[0]})[0]
        dcp = setup.layout.dcp
        given[s.cache_exchange_us] = 2 * self.exchange_us(dcp, size, c) if dcp > 1 else 0.0
        given[s.exchange_us] = self.exchange_us(setup.attention_cards, size, c)
        given[s.experts_exchange_us] = self.exchange_us(setup.expert_cards, size * setup.token_groups, c)
        values = {**self.stacked, **given}
        names = [name for name in equations.terms if name in self.named]
        found = dict(zip(names, _call(tuple(equations.terms[name] for name in names), values), strict=True))
        out = {name: np.zeros((len(self.kinds), n)) for name in TERMS}
        for name, value in found.items():
            out[name] = out[name] + value
        captured = setup.graphs & ~reading
        fixed, engine = out.pop(FIXED), out.pop(ENGINE)
        work = np.asarray(sum(out.values()), dtype=np.float64)
        launched = _call(equations.launched, {**values, s.pass_work_us: work})[0]
        out = {FIXED: np.where(captured, fixed, 0.0), **out, ENGINE: engine,
               LAUNCH: np.where(captured, 0.0, launched - work)}  # fmt: skip
        return {name: value[self.kind] for name, value in out.items()}

    def times(self, c: Constants, decode: Array, prompt: Array, context: Array | float, seen: Array | float) -> Array:
        """Times of passes in us, of shape (stages, n)."""
        return np.asarray(sum(self.terms(c, decode, prompt, context, seen).values()), dtype=np.float64)

    def hop_us(self, c: Constants, tokens: float) -> float:
        """Handing a pass of so many tokens to the next stage, in us."""
        return float(self.hops_us(c, np.array([tokens]))[0])

    def hops_us(self, c: Constants, tokens: Array) -> Array:
        """The same for many passes, of shape (n,)."""
        values = {**self.stages[0], s.decode_tokens: tokens, s.prompt_tokens: 0.0, s.drafted_tokens: 0.0,
                  s.hop_start_us: c["hop_start_us"], s.hop_rate: c["hop_rate"]}  # fmt: skip
        return np.asarray(_call(_equations().hop, values)[0], dtype=np.float64)


@dataclass(frozen=True)
class _Equations:
    routing: tuple[sp.Expr, ...]
    exchange: tuple[sp.Expr, ...]
    launched: tuple[sp.Expr, ...]
    hop: tuple[sp.Expr, ...]
    terms: Mapping[str, sp.Expr]


@lru_cache(maxsize=1)
def _equations() -> _Equations:
    """The equations, built once: to build one takes longer than to evaluate it."""
    return _Equations(
        routing=(eq.tokens_per_expert(),),
        exchange=(eq.exchange_bytes(),), launched=(eq.launched_us(s.pass_work_us),), hop=(eq.hop_us(),),
        terms={FIXED: eq.decode_fixed_us(), DENSE: eq.dense_us(), EXPERTS: eq.experts_us(), KDA: eq.kda_us(),
               ATTENTION: eq.mla_us(), GROUPED: eq.gqa_us(), EXCHANGE: eq.exchanges_us(),
               PROMPT: eq.other_prompt_us(), ENGINE: eq.engine_us()},
    )  # fmt: skip


def _call(expressions: tuple[sp.Expr, ...], values: Mapping[sp.Symbol, Any]) -> list[Any]:
    arguments, function = prepared(expressions)
    return list(function(*(values[x] for x in arguments)))


@lru_cache(maxsize=64)
def expected_most(cards: int) -> float:
    """The largest of so many standard normal loads, on average: 0 for one card. By the integral of its distribution."""
    if cards == 1:
        return 0.0
    x = np.linspace(-8, 8, 4001)
    below = np.array([0.5 * (1 + erf(v / sqrt(2))) for v in x])
    most = below**cards
    return float(np.trapezoid(x * np.gradient(most, x), x))

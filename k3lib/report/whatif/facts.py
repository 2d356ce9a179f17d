"""What the page knows of models, engines, cards and prices: numbers that the library works out when a book is built."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from k3lib.account import symbols as s
from k3lib.calibrate.predict import numbers, situation
from k3lib.choose.deployed import deployed
from k3lib.deploy import constants as co
from k3lib.deploy import curves as cv
from k3lib.deploy import ledger as led
from k3lib.deploy.load import Load
from k3lib.deploy.passes import TABLE_LINK_DEVICE, PassTimes, expected_most
from k3lib.deploy.plan import capacity_bytes
from k3lib.deploy.setup import OF_ENGINE, SetUp, constants, scopes, stage_values
from k3lib.deploy.speed import Question
from k3lib.engines import sglang, vllm
from k3lib.engines.layout import Layout
from k3lib.evaluate import exact
from k3lib.facts.catalog import engine_rules
from k3lib.facts.clusters import NamedCluster
from k3lib.facts.planned import planned
from k3lib.models.model import Model
from k3lib.report.whatif.names import MOST_NICS

ENGINES = (vllm.ENGINE, sglang.ENGINE)
NIC_RATE = "nic_rate"
SIZES = tuple(2**i for i in range(13))
BYTES_RULES = ("runtime_bytes", "runtime_bytes_per_token", "activation_bytes", "activation_bytes_per_token",
               "graph_bytes", "workspace_bytes", "draft_bytes_per_token")  # fmt: skip


def of_model(model: Model) -> dict[str, Any]:
    """A model's layers and sizes, and what an expert's weights are."""
    v = model.values
    routed = [a for a in model.arrays if a.group in (led.ROUTED, led.SCALES)]
    stored, params = (sum(float(exact(getattr(a, n), v)) for a in routed) for n in ("bytes", "params"))
    whole = 3 * v.get(s.expert_input, v[s.hidden]) * v[s.expert_width]
    return {
        "name": model.name, "mixers": model.mixers, "mlps": model.mlps, "longest": model.longest,
        "residual_block": model.residual_block, "rows": led.residual_rows(model),
        "arrays": [{"group": "attnres"}] if any(a.group == "attnres" for a in model.arrays) else [],
        "values": {str(x): value for x, value in v.items()},
        "expert_weights": whole, "bytes_of_weight": stored / params,
        "expert_scale": v[s.expert_width] * v.get(s.expert_input, v[s.hidden]) / (cv.TABLE_WIDTH * cv.TABLE_INPUT),
    }  # fmt: skip


def of_engines() -> dict[str, Any]:
    """Rules of the engines."""
    found: dict[str, Any] = {}
    for engine in ENGINES:
        rules: dict[str, Any] = {}
        for name in sorted(engine_rules()[engine.name]):
            row = engine.rule(name)
            rules[name] = {"value": row.value, "grade": row.grade}
            if name in BYTES_RULES:
                rules[name]["bytes"] = engine.in_bytes(name)
        found[engine.name] = rules
    return found


def of_card(model: Model, row: NamedCluster) -> dict[str, Any]:
    """A kind of card as the speed model sees it. row: a cluster of it, whose nodes stand for all."""
    setups = {e.name: {n: _setup(model, row, e, n) for n in range(1, MOST_NICS + 1)} for e in ENGINES}
    first = setups[ENGINES[0].name][1]
    device, facts, stage = row.device, first.facts, stage_values(first)[0]
    kernel = cv.SCALED.get(first.kernel, first.kernel)
    link, table = (cv.fact(facts, d, "nvlink_unidirectional", "GB/s") for d in (device, TABLE_LINK_DEVICE))
    known = {name: {n: constants(one, numbers()).values for n, one in many.items()} for name, many in setups.items()}
    shared = {name: [k.value, k.spread] for name, k in known[ENGINES[0].name][1].items()
              if name not in (*OF_ENGINE, NIC_RATE)}  # fmt: skip
    heads = {max(1, round(model.values[s.kda_heads] / n)) for n in SIZES}
    return {
        "device": device, "cards_per_node": row.nodes and row.cards // row.nodes,
        "kernel": kernel, "architecture": co.architecture(device),
        "capacity": capacity_bytes(device), "reach": cv.fact(facts, device, "scale_up_domain", "cards"),
        "bandwidth": stage[s.card_bandwidth], "rate": stage[s.card_rate], "cache_rate": stage[s.cache_rate],
        "link_ratio": (link or table or 1.0) / (table or 1.0),
        "kda_us": {str(h): cv.kda_prompt_us(device, h) or 0.0 for h in sorted(heads)},
        "constants": shared,
        "of_engine": {e: {n: [many[1][n].value, many[1][n].spread] for n in OF_ENGINE}
                      for e, many in known.items()},
        "situation": {e: _situation(many[1]) for e, many in setups.items()},
        "of_nics": [_nic_rate(one) for one in setups[ENGINES[0].name].values()],
        "whole": None if kernel == cv.ROOFLINE else _curve(cv._whole_expert(kernel, device)),
    }  # fmt: skip


def _situation(setup: SetUp) -> str:
    """What of the card and the engine has been measured, in words."""
    return situation(Question(PassTimes(setup), Load(1, 2, 1), 1, 1, 1, 1), numbers())


def _nic_rate(setup: SetUp) -> list[float]:
    """The rate of a network card: value, spread, and whether the model runs with another one when it is moved.

    One that is taken over from other numbers of network cards is worked out anew, so that to move it changes nothing.
    """
    was = constants(setup, numbers()).values[NIC_RATE]
    moved = {**numbers(), (NIC_RATE, scopes(setup, NIC_RATE)[0]): replace(was, value=was.value * 2)}
    return [was.value, was.spread, float(constants(setup, moved).values[NIC_RATE].value != was.value)]


def _setup(model: Model, row: NamedCluster, engine: Any, nics: int) -> SetUp:
    one = deployed(planned(row.shape, nics))
    return SetUp(model=model, cluster=one.cluster, layout=Layout(tp=8), engine=engine, nics=nics,
                 hardware=one.options.hardware)  # fmt: skip


def of_kernels(families: Iterable[str]) -> dict[str, Any]:
    """Measured curves that cards share: experts by width and by sets, all-reduces by bytes."""
    return {
        "filled": {f: {str(n): c and _curve(c) for n in SIZES for c in [cv._filled(f, n)]} for f in families},
        "shares": {f: [[share, _curve(curve)] for share, curve in cv._shares(f)] for f in families},
        "exchange": {n: _curve(cv.exchange_curve(n)) for n in ("custom, vLLM", "custom, SGLang", "nccl")},
        "most_over_mean": {str(n): expected_most(n) for n in SIZES},
    }


def _curve(curve: cv.Curve) -> list[list[float]]:
    return [np.asarray(x).tolist() for x in (curve.size, curve.us)]

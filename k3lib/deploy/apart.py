"""Prefill and decode on cards of their own: what the prompts' side takes, and what moves to the other."""

from __future__ import annotations

import math

import numpy as np

from k3lib.account import cache
from k3lib.account import symbols as s
from k3lib.deploy import ledger as led
from k3lib.deploy.curves import Curve
from k3lib.deploy.load import Apart, Load
from k3lib.deploy.passes import PassTimes
from k3lib.deploy.setup import Constants, SetUp
from k3lib.evaluate import exact
from k3lib.facts.timings import exchange_times


def moved_bytes(setup: SetUp, isl: int) -> float:
    """Cache and states of one request that go from one side to the other, one copy of each. Unit: B."""
    v = setup.model.values
    widths = {s.cache_bytes: led.width_bytes(led.CACHE_DTYPES[setup.cache_dtype]),
              s.state_bytes: led.width_bytes(led.STATE_DTYPES[setup.state_dtype]),
              s.conv_bytes: led.width_bytes("BF16")}  # fmt: skip
    total = 0.0
    if s.layers_mla in v:
        total += isl * float(exact(cache.mla_cache_bytes_per_token(), {**v, **widths}))
    elif s.layers_gqa in v:
        total += isl * float(exact(cache.gqa_cache_bytes_per_token(), {**v, **widths}))
    if s.layers_kda in v:
        total += float(exact(cache.kda_state_bytes(), {**v, **widths}))
    return total


def transfer_us(size: float) -> float:
    """Time to move a cache of so many bytes between two nodes, as measured with four network cards. Unit: us."""
    rows = sorted((float(x.message_bytes), x.time_us) for x in exchange_times()
                  if x.collective == "kv_transfer" and x.message_bytes and x.time_us)  # fmt: skip
    curve = Curve(np.array([b for b, _ in rows]), np.array([t for _, t in rows]))
    return float(curve.at(np.array([size]))[0])


def prompts_apart(passes: PassTimes, known: Constants, load: Load, chunk: int) -> Apart:
    """What one deployment takes for a prompt until its cache has arrived, and between two when many wait."""
    chunks = math.ceil(load.read / chunk)
    alone = np.array([float(min(load.read, chunk))])
    together = max(chunk // load.read, 1)
    full = np.array([float(together * min(load.read, chunk))])
    none = np.array([0.0])
    one, many = (passes.times(known, none, prompt, load.isl, load.seen)[:, 0] for prompt in (alone, full))
    hops = passes.hop_us(known, float(alone[0])) * len(one)
    latency = float(one.sum() + (chunks - 1) * one.max()) + hops + transfer_us(moved_bytes(passes.setup, load.isl))
    return Apart(latency, float(many.max()) * chunks / together)

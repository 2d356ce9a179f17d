"""What an operator can cut when memory is short, and what each cut gives back, by the ledger."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from k3lib.deploy import constants as co
from k3lib.deploy.caches import Settings
from k3lib.deploy.plan import Plan, make_plan
from k3lib.units import GIBI

SHORTER, HIGHER, SMALLER, CACHE, STATE, PREFIX, LOWER, EAGER = (
    "shorter", "higher-share", "smaller-pass", "fp8-cache", "bf16-state", "no-prefix", "lower-share", "eager",
)  # fmt: skip
# Those that make room for caches, which is what is short most often.
FOR_CACHES = (SHORTER, HIGHER, SMALLER, CACHE, STATE, PREFIX)
EVERY = (*FOR_CACHES, LOWER, EAGER)
SHORTER_TOKENS, SMALLER_TOKENS, HIGHER_SHARE, LESS_SHARE = 8192, 2048, 0.95, 0.05


@dataclass(frozen=True)
class Cut:
    """One thing to give up, and what it gives back on a card of the tightest stage in GiB.

    gives_gib: memory for caches. beside_gib: memory beside the engine's share. concurrency: requests of the longest
    length that fit after it. settings: those after it.
    """

    key: str
    what: str
    settings: Settings
    gives_gib: float
    beside_gib: float
    concurrency: float
    fits: bool


def cuts(plan: Plan, keys: Iterable[str] = FOR_CACHES) -> list[Cut]:
    """What an operator can cut, in the order of what it gives back. keys: which of `EVERY` to try."""
    known = _tries(plan)
    found = []
    for key in keys:
        what, settings = known[key]
        if settings == plan.settings:
            continue
        after = make_plan(plan.model, plan.cluster, plan.layout, plan.engine.name, settings)
        freed = after.stages[after.tightest].free[0] - plan.stages[plan.tightest].free[0]
        beside = beside_gib(after)[0] - beside_gib(plan)[0]
        held = after.caches.max_concurrency if after.caches else 0.0
        found.append(Cut(key, what, settings, freed / GIBI, beside, held, after.fits))
    return sorted(found, key=lambda cut: (cut.fits, cut.concurrency), reverse=True)


def _tries(plan: Plan) -> dict[str, tuple[str, Settings]]:
    s = plan.settings
    chunk = s.chunk_tokens or plan.engine.whole("chunk_tokens")
    shorter = min(s.max_model_len, SHORTER_TOKENS)
    smaller, lower = min(chunk, SMALLER_TOKENS), max(LESS_SHARE, round(plan.utilisation - LESS_SHARE, 3))
    return {
        SHORTER: (f"longest request {s.max_model_len} to {shorter} tokens", replace(s, max_model_len=shorter)),
        HIGHER: (f"share of the card to {HIGHER_SHARE:g}", replace(s, utilisation=max(plan.utilisation, HIGHER_SHARE))),
        SMALLER: (f"prefill pass to {smaller} tokens", replace(s, chunk_tokens=smaller)),
        CACHE: ("cache in FP8", replace(s, cache_dtype="fp8")),
        STATE: ("state in BF16", replace(s, state_dtype="bfloat16")),
        PREFIX: ("prefix cache off", replace(s, prefix_caching=False)),
        LOWER: (f"share of the card to {lower:g}", replace(s, utilisation=lower)),
        EAGER: ("no captured graphs", replace(s, graphs=False)),
    }


def runs_here(plan: Plan, key: str) -> bool:
    """Whether a cut works on this engine and card: vLLM 0.33 does not run an FP8 cache of MLA on Hopper.

    Source: vllm_033.
    """
    return not (key == CACHE and plan.engine.paged and co.architecture(plan.cluster.device) == "hopper")


def beside_gib(plan: Plan) -> tuple[float, float, float]:
    """What the tightest card has left beside the engine's share when all runs, in GiB: value, least, most."""
    lines = [line for line in plan.stages[plan.tightest].lines if line.outside]
    left = plan.capacity * (1 - plan.utilisation)
    value, high, low = (left - sum(getattr(line, end) for line in lines) for end in ("bytes", "high", "low"))
    return value / GIBI, high / GIBI, low / GIBI

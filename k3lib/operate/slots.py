"""Requests that two pools hold: how SGLang's ratio of states to tokens, and the slots of a request, set the limit."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from k3lib.deploy.inverse import best_state_ratio
from k3lib.deploy.plan import Plan, make_plan
from k3lib.engines import sglang
from k3lib.errors import InputError

RATIOS = (0.05, 0.1, 0.2, 0.5, 0.9, 2.0)
BEST = "best ratio"


@dataclass(frozen=True)
class Held:
    """Requests that two pools hold. by_states, by_tokens: what each alone would hold; the smaller decides."""

    what: str
    ratio: float
    by_states: int
    by_tokens: int

    @property
    def requests(self) -> int:
        """Requests at once."""
        return min(self.by_states, self.by_tokens)

    @property
    def limit(self) -> str:
        """The pool that sets the limit."""
        return "states" if self.by_states < self.by_tokens else "tokens"


def pooled(plan: Plan) -> tuple[Plan | None, str]:
    """The plan under SGLang, or None with the reason why there is none."""
    if not plan.engine.paged:
        return (plan, "") if plan.caches else (None, plan.reason)
    try:
        made = make_plan(plan.model, plan.cluster, plan.layout, "sglang", plan.settings)
    except InputError as error:
        return None, str(error)
    return (made, "") if made.caches else (None, made.reason)


def by_ratio(plan: Plan, context: int, ratios: Iterable[float] = RATIOS) -> list[Held]:
    """Requests of `context` tokens by the ratio of the pools; the best ratio is among them."""
    best = best_state_ratio(plan, context)
    return [_held(plan, context, BEST if r == best else f"ratio {r:g}", state_ratio=r)
            for r in sorted({*ratios, best})]  # fmt: skip


def by_setting(plan: Plan, context: int) -> list[Held]:
    """Requests of `context` tokens under other strategies of the prefix cache and a narrower state."""
    kinds = [(f"strategy {name}", {"cache_strategy": name}) for name in sglang.STRATEGIES]
    return [_held(plan, context, what, **changed) for what, changed in
            [*kinds, ("state in BF16", {"state_dtype": "bfloat16"})]]  # fmt: skip


def _held(plan: Plan, context: int, what: str, **changed: object) -> Held:
    settings = replace(plan.settings, max_num_seqs=plan.model.longest or 2**20, **changed)  # type: ignore[arg-type]
    made = make_plan(plan.model, plan.cluster, plan.layout, plan.engine.name, settings)
    ratio = made.engine.rule("state_ratio").value if settings.state_ratio is None else settings.state_ratio
    if made.caches is None:
        return Held(what, ratio, 0, 0)
    return Held(what, ratio, made.caches.max_running_requests, made.caches.kv_tokens // context)

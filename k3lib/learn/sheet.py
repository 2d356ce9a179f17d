"""The equations of the cheat sheet, from the account: by topic, in words, with what stands on the left."""

from __future__ import annotations

from dataclasses import dataclass

import sympy as sp

from k3lib.account import cache, estimates, passes, readings, sharding
from k3lib.account import costs as co
from k3lib.account import money_symbols as m
from k3lib.account.storage import NAMED, bits_per_weight

DIGITS = 4  # of the seconds of a month, in millions


@dataclass(frozen=True)
class Formula:
    """One line of the sheet. left: LaTeX."""

    words: str
    left: str
    expression: sp.Expr


def formulas() -> tuple[Formula, ...]:
    """What to know by heart, in the order of the book."""
    return (
        Formula("bits of a 4-bit weight with its scale", "q", bits_per_weight(NAMED["mxfp4"][0])),
        Formula("bytes of weights, at one number of bits", "B", readings.nominal_bytes()),
        Formula("cache of a token, on every card of a stage", "b_{token}", cache.mla_cache_bytes_per_token()),
        Formula("state of a sequence in one layer, on one card", "b_{slot}", sharding.kda_state_bytes()),
        Formula("different experts that B tokens use", "D", estimates.used_experts()),
        Formula("least time to read them", "t_{read}", estimates.reading_us()),
        Formula("an all-reduce between servers", "t_x", passes.exchange_between_nodes_us()
                .subs(passes.exchange_bytes(), sp.Symbol("b_x"))),
        Formula("idle share of a pipeline", r"\phi_{idle}", estimates.idle_share()),
        Formula("least time to read a prompt", "t_{prompt}", estimates.prompt_s()),
        Formula("output of B requests", "v", estimates.output_tps()),
        Formula("requests in flight (Little)", "n", estimates.requests_in_flight()),
        Formula("gain of a draft", "g", estimates.draft_gain()),
        Formula("time to load the weights", "t_{load}", estimates.loading_s()),
        Formula("monthly payment for each yuan", "c", co.capital_recovery(m.life)),
        Formula("output of a month", "V", co.output_of_up().evalf(DIGITS)),
        Formula("cost of a million output tokens", "C_{Mtok}", m.month_cost / sp.Symbol("V")),
    )  # fmt: skip

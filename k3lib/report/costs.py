"""Costs as results and as cells of tables: bills, tokens, break-evens, draws."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping

import sympy as sp

from k3lib.account import costs as eq
from k3lib.account import money_symbols as m
from k3lib.choose.costed import Costs, Full
from k3lib.cost.api import Offer, api_cost_cny
from k3lib.cost.own import Line, Ownership
from k3lib.cost.unit import UnitCost, break_even, break_even_hours, pays_back_months
from k3lib.facts.tables import Grade
from k3lib.ranges import Range
from k3lib.report.compare import NONE_SHOWN, in_range
from k3lib.report.trail import Html, cell, in_prose
from k3lib.results import Result, record
from k3lib.units import number

Make = Callable[..., Result]
# Figures of a workload on a cluster: the unit of each, how it is printed, and the equation behind it.
UNIT_FIGURES: dict[str, tuple[str, str, Callable[[], sp.Expr]]] = {
    "cny_per_mtok_output": ("CNY/Mtok", ",.0f", eq.unit_of_month),
    "cny_per_mtok_all": ("CNY/Mtok", ",.1f", lambda: eq.unit_of_month() / eq.tokens_per_answer_token()),
    "cny_per_user_month": ("CNY/user-month", ",.0f", lambda: eq.unit_of_month() * eq.user_mtok()),
    "kwh_per_mtok": ("kWh/Mtok", ",.0f", lambda: eq.energy_kwh() / eq.output_of_up()),
    "mtok_month": ("Mtok/month", ",.0f", eq.output_of_up),
    "users": ("users", ",.0f", lambda: eq.output_of_up() / eq.user_mtok()),
}
NEVER = "never"


def key_of(way: str) -> str:
    """A way's name as part of a key, as 'own-h20x32' or 'api-k3-moonshot-cn'."""
    return way.replace(":", "-").replace("@", "-").replace(".", "-")


def ranged(key: str, r: Range, unit: str, make: Make = record, grade: Grade = "assumed", **trail: object) -> Result:
    """A result with its range."""
    return make(key, r.value, unit=unit, grade=grade, low=r.low, high=r.high, **trail)


def publish_bill(held: Ownership, prefix: str, make: Make = record) -> dict[str, Result]:
    """Sums of a bill: what is paid at once, a month of it, a month of what runs, both, and the energy."""
    behind = {"sources": list(held.sources)}
    sums = {
        "capex_cny": (held.capex_cny, "CNY", eq.investment_cny()),
        "capital_cny": (held.capital_cny, "CNY/month", eq.capital_cny()),
        "running_cny": (held.running_cny, "CNY/month", eq.running_cny()),
        "monthly_cny": (held.monthly_cny, "CNY/month", eq.monthly_cny()),
    }
    if held.kwh_month is not None:
        sums["kwh_month"] = (held.kwh_month, "kWh/month", eq.energy_kwh())
    return {
        name: ranged(f"{prefix}.{name}", r, unit, make, held.grade, equation=equation, **behind)
        for name, (r, unit, equation) in sums.items()
    }


def publish_line(line: Line, prefix: str, make: Make = record) -> tuple[Result, Result]:
    """A line of a bill: what it is in its kind, and by the month."""
    unit = "CNY" if line.kind == "capex" else "CNY/month"
    own = ranged(f"{prefix}.line.{line.name}", line.cny, unit, make, line.grade, equation=line.expression,
                 inputs=dict(line.inputs), sources=list(line.sources))  # fmt: skip
    month = ranged(f"{prefix}.line.{line.name}.month", line.monthly_cny, "CNY/month", make, line.grade, inputs=[own])
    return own, month


def publish_speed(cluster_id: str, workload_id: str, full: Full, sources: Iterable[str], make: Make = record) -> Result:
    """The output that a cluster's costs are counted with."""
    return ranged(f"cost.{cluster_id}.full_output_tps.{workload_id}", full.seen.output_tps, "tok/s", make, "derived",
                  sources=list(sources))  # fmt: skip


def unit_figures(found: UnitCost) -> dict[str, Range]:
    """Figures of UNIT_FIGURES; those that do not exist are left out."""
    all_of_them = {"cny_per_mtok_output": found.per_mtok_output, "cny_per_mtok_all": found.per_mtok_all,
                   "cny_per_user_month": found.per_user, "kwh_per_mtok": found.kwh_per_mtok,
                   "mtok_month": found.mtok_month, "users": found.users}  # fmt: skip
    return {name: r for name, r in all_of_them.items() if r is not None}


def publish_units(
    prefix: str, workload_id: str, held: Ownership, found: UnitCost, month: Result, speed: Result, make: Make = record
) -> dict[str, Result]:
    """What a workload's tokens cost on a cluster. month, speed: the results that they are made of."""
    known = {**found.mix.values, m.busy_share: held.utilisation.value, m.up_share: held.availability.value}
    if found.mix.requests is not None:
        known[m.user_requests] = found.mix.requests.value
    made = {}
    for name, r in unit_figures(found).items():
        unit, _, equation = UNIT_FIGURES[name]
        used = {x: known[x] for x in sorted(equation().free_symbols, key=str) if x in known}
        inputs: dict[object, object] = {**used, "month": month, "speed": speed}
        made[name] = ranged(f"{prefix}.{name}.{workload_id}", r, unit, make, held.grade, equation=equation(),
                            inputs=inputs)  # fmt: skip
    return made


def publish_offer(offer: Offer, costs: Costs, workload_id: str, make: Make = record, share: Range | None = None,
                  suffix: str = "") -> Result:  # fmt: skip
    """What a host asks for a million output tokens of a workload with its prompts."""
    mix = costs.mix(workload_id)
    known = {**mix.values, m.api_input: offer.input.value, m.api_cached: offer.cached.value,
             m.api_output: offer.output.value, m.api_share: 1.0 if share is None else share.value}  # fmt: skip
    key = f"cost.api.{offer.host}.{offer.model}{suffix}.cny_per_mtok_output.{workload_id}"
    grade: Grade = offer.grade if share is None else "assumed"
    grade = "derived" if grade == "measured" else grade
    return ranged(key, api_cost_cny(mix, offer, share), "CNY/Mtok", make, grade, equation=eq.api_cny(), inputs=known,
                  sources=list(offer.sources))  # fmt: skip


def publish_break_even(
    costs: Costs, held: Ownership, workload_id: str, service: str, price: Result, month: Result,
    against: str = "", make: Make = record,
) -> dict[str, Result]:  # fmt: skip
    """Utilisation and volume at which a cluster and a service cost the same; nothing where it serves nothing.

    against: what the keys call the service, if not by its name.
    """
    full = costs.full(held.cluster_id, workload_id)
    if full is None:
        return {}
    asked = Range(float(price.value), float(price.low or price.value), float(price.high or price.value))
    found = break_even(held, full.seen.output_tps, costs.mix(workload_id), asked)
    prefix = f"cost.breakeven.{held.cluster_id}.{against or key_of(service)}"
    inputs = [price, month]
    return {
        "utilisation": ranged(f"{prefix}.utilisation.{workload_id}", found.utilisation, "1", make, held.grade,
                              equation=eq.break_even_of_month(), inputs=inputs),
        "mtok_month": ranged(f"{prefix}.mtok_month.{workload_id}", found.mtok_month, "Mtok/month", make, held.grade,
                             inputs=inputs),
    }  # fmt: skip


def publish_least(
    cluster_id: str, against: str, found: Mapping[str, Mapping[str, Result]], make: Make = record
) -> Mapping[str, Result]:
    """The same of the workload that pays for a cluster first; nothing where it serves none. found: by workload."""
    served = [one for one in found.values() if one]
    if not served:
        return {}
    best = min(served, key=lambda one: float(one["utilisation"].value))
    return {name: same(f"cost.breakeven.{cluster_id}.{against}.{name}", r, make) for name, r in best.items()}


def same(key: str, r: Result, make: Make = record) -> Result:
    """A result under another key, as a page's own name for it."""
    return make(key, r.value, unit=r.unit, grade=r.grade, low=r.low, high=r.high, inputs=[r])


def in_words(key: str, r: Result | None, unit: str, spec: str, otherwise: str, make: Make = record) -> Result:
    """A number as a sentence has it, or what stands there where it does not exist."""
    if r is None:
        return make(key, otherwise, unit="", grade="assumed", sources=["k3lib_assumed"])
    return make(key, in_prose(r, unit, spec), unit="", grade=r.grade, inputs=[r])


def months_words(r: Range) -> str:
    """Months until owning has paid, in words, since they may have no end."""
    ends = [NEVER if math.isinf(x) else number(x, ",.0f") for x in (r.value, r.low, r.high)]
    if ends[0] == ends[1] == ends[2]:
        return ends[0]
    return f"{ends[0]} ({ends[1]} to {ends[2]})"


def payback_words(result: Result) -> str:
    """Months of `payback` for a sentence."""
    return in_prose(result, "months", ",.0f") if result.is_number else f"in months: {result.value}"


def payback_cell(result: Result) -> Html:
    """Months of `payback` for a table."""
    if result.is_number:
        return in_range(result, ",.0f")
    first, bracket, rest = str(cell(result)).partition(" (")
    return Html(f"{first}</a><br><small>{rest.removesuffix('</a>').rstrip(')')}</small>" if bracket else first)


def payback(
    key: str, held: Ownership, instead: Ownership | Range, sources: Iterable[str], make: Make = record
) -> Result:
    """Months until owning has saved its investment: a number, or words where an end of it never comes."""
    months = pays_back_months(held, instead)
    if all(math.isfinite(x) for x in (months.low, months.value, months.high)):
        return ranged(key, months, "months", make, held.grade, equation=eq.payback_months(), sources=list(sources))
    return make(key, months_words(months), unit="", grade=held.grade, sources=list(sources))


def publish_hours(held: Ownership, rental: Ownership, rent_class: str, make: Make = record) -> Result:
    """Share of the hours above which owning beats a rent for these hours alone."""
    both = list(dict.fromkeys((*held.sources, *rental.sources)))
    return ranged(f"cost.breakeven.{held.cluster_id}.rent-{rent_class}.utilisation", break_even_hours(held, rental),
                  "1", make, held.grade, equation=eq.break_even_hours(), sources=both)  # fmt: skip


def cost_cell(found: Mapping[str, Result] | None, figure: str, *, marked: bool = False) -> Html | str:
    """A figure for a table with its range; a star where its clients do not get what the goals ask."""
    if not found or figure not in found:
        return NONE_SHOWN
    shown = in_range(found[figure], UNIT_FIGURES[figure][1])
    return Html(f"{shown}*") if marked else shown


def share_cell(result: Result | None) -> Html | str:
    """A break-even utilisation for a table in per cent; above all hours it is never reached."""
    if result is None:
        return NONE_SHOWN
    shown = in_range(result, ",.0f", "%")
    return (
        Html(f"{NEVER}<br><small>{shown.replace('<br><small>', ' (').replace('</small>', ')</small>')}")
        if float(result.value) > 1
        else shown
    )

"""Units and how a number is printed. GB and GiB are different units here, never two spellings of one.

A unit belongs to a dimension; a value can be shown in any unit of its dimension and in no other.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from k3lib.errors import InputError, near

KILO, MEGA, GIGA, TERA = 10**3, 10**6, 10**9, 10**12
KIBI, MEBI, GIBI, TEBI = 2**10, 2**20, 2**30, 2**40
BITS_PER_BYTE = 8
MONTHS_PER_YEAR = 12
HOURS_PER_DAY = 24
HOURS_PER_YEAR = 365 * HOURS_PER_DAY  # so a month is 730 hours, as rental lists count it
SECONDS_PER_HOUR = 3600
HOURS_PER_MONTH = HOURS_PER_YEAR // MONTHS_PER_YEAR
SECONDS_PER_MONTH = HOURS_PER_MONTH * SECONDS_PER_HOUR

# A sign, thousands separators, at most two figures of precision, a kind: all that a number in a book needs.
SPEC = re.compile(r"\+?,?(\.\d{1,2})?[dfge]")

NO_BREAK_SPACE = "\u00a0"


@dataclass(frozen=True)
class Unit:
    """`factor`: base units of its `dimension` in one of this unit. `label`: what is printed behind a number."""

    dimension: str
    factor: Fraction
    label: str


def _scale(dimension: str, factors: Mapping[str, int | Fraction]) -> dict[str, Unit]:
    return {name: Unit(dimension, Fraction(factor), name) for name, factor in factors.items()}


CURRENCIES = ("CNY", "USD")
# What money is paid for: by what it measures, and within a line in units that convert into each other.
PAID_FOR: dict[str, Mapping[str, int | Fraction]] = {
    **{thing: {thing: 1} for thing in (
        "server", "module of 8", "card", "rack of 72", "superpod of 64", "superpod of 384", "switch", "NIC", "cabinet",
        "person-year")},
    "memory": {"GB": 1, "TB": KILO},
    "energy": {"kWh": 1, "MWh": KILO},
    "power": {"kW": 1, "W": Fraction(1, KILO)},
    "power held": {"kW-month": 1, "kW-year": MONTHS_PER_YEAR},
    "bandwidth held": {"Mbps-month": 1, "Gbps-month": KILO},
    "card time": {"card-hour": 1, "card-month": HOURS_PER_MONTH, "card-year": HOURS_PER_YEAR},
    "server time": {"server-month": 1, "server-year": MONTHS_PER_YEAR},
    "tokens": {"Mtok": 1, "token": Fraction(1, MEGA)},
    "users": {"user-month": 1, "user-year": MONTHS_PER_YEAR},
    "time": {"month": 1, "year": MONTHS_PER_YEAR},
}  # fmt: skip
SUMS = {"": 1, "thousand ": KILO, "million ": MEGA}


def _money(currency: str) -> dict[str, Unit]:
    """Sums of money, and money for a thing. No unit converts one currency into another: that takes a rate."""
    found = _scale(f"money in {currency}", {f"{size}{currency}": factor for size, factor in SUMS.items()})
    for what, things in PAID_FOR.items():
        sizes = SUMS if what == "time" else {"": 1}  # only sums by the month or year are large
        prices = {f"{size}{currency}/{thing}": factor / Fraction(amount)
                  for thing, amount in things.items() for size, factor in sizes.items()}  # fmt: skip
        found |= _scale(f"{currency} for {what}", prices)
    return found


MONEY = {currency: _money(currency) for currency in CURRENCIES}
UNITS: dict[str, Unit] = {
    **_scale("bytes", {"B": 1, "kB": KILO, "MB": MEGA, "GB": GIGA, "TB": TERA, "PB": KILO * TERA}),
    **_scale("bytes", {"KiB": KIBI, "MiB": MEBI, "GiB": GIBI, "TiB": TEBI}),
    **_scale("bytes per token", {"B/token": 1, "kB/token": KILO, "KiB/token": KIBI}),
    **_scale("requests", {"requests": 1}),
    **_scale("slots", {"slots": 1}),
    **_scale("layouts", {"layouts": 1}),
    **_scale("values", {"values": 1}),
    **_scale("cases", {"cases": 1}),
    **_scale("runs", {"runs": 1}),
    **_scale("deployments", {"deployments": 1}),
    **_scale("sources", {"sources": 1}),
    **_scale("bits per weight", {"bit/weight": 1}),
    **_scale(
        "parameters",
        {"parameters": 1, "million parameters": MEGA, "billion parameters": GIGA, "trillion parameters": TERA},
    ),
    **_scale("tensors", {"tensors": 1}),
    **_scale("patterns", {"patterns": 1}),
    **_scale("cards", {"cards": 1}),
    **_scale("layers", {"layers": 1}),
    **_scale("features", {"features": 1}),
    **_scale("heads", {"heads": 1}),
    **_scale("models", {"models": 1}),
    **_scale("experts", {"experts": 1}),
    **_scale("tokens", {"tokens": 1, "Mtok": MEGA}),
    **_scale("users", {"users": 1}),
    **_scale("pixels", {"pixels": 1}),
    **_scale("positions", {"positions": 1}),
    **_scale("weights", {"weights": 1}),
    **_scale("work per token", {"FLOP/token": 1}),
    **_scale("time per token", {"us/token": 1}),
    **_scale("time", {"us": Fraction(1, MEGA), "ms": Fraction(1, KILO), "s": 1, "min": 60}),
    **_scale("time", {"h": SECONDS_PER_HOUR, "days": HOURS_PER_DAY * SECONDS_PER_HOUR, "months": SECONDS_PER_MONTH}),
    **_scale("time", {"years": SECONDS_PER_MONTH * MONTHS_PER_YEAR}),
    **_scale("rate of bytes", {"B/s": 1, "MB/s": MEGA, "GB/s": GIGA, "TB/s": TERA}),
    **_scale("rate of bytes", {"Gb/s": Fraction(GIGA, BITS_PER_BYTE)}),
    **_scale("rate of work", {"MFLOPS": MEGA, "TFLOPS": TERA, "PFLOPS": KILO * TERA}),
    **_scale("rate of tokens", {"tok/s": 1, "Mtok/month": Fraction(MEGA, SECONDS_PER_MONTH)}),
    **_scale("frequency", {"1/s": 1, "MHz": MEGA, "GHz": GIGA}),
    **_scale("power", {"W": 1, "kW": KILO, "kWh/month": Fraction(KILO, HOURS_PER_MONTH)}),
    **_scale("energy per token", {"kWh/Mtok": 1}),
    **_scale("energy", {"Wh": 1, "kWh": KILO, "MWh": MEGA, "mJ": Fraction(1, KILO * SECONDS_PER_HOUR)}),
    **_scale("temperature", {"°C": 1}),
    **_scale("events", {"events": 1}),
    **_scale("share a year", {"1/year": 1, "%/year": Fraction(1, 100)}),
    **_scale("yuan to the dollar", {"CNY/USD": 1}),
    **MONEY["CNY"],
    **MONEY["USD"],
    **_scale("processors", {"SMs": 1}),
    "1": Unit("ratio", Fraction(1), ""),
    "%": Unit("ratio", Fraction(1, 100), "%"),
}


def unit(name: str) -> Unit:
    """The unit of that name. Raises InputError with the nearest known name."""
    try:
        return UNITS[name]
    except KeyError:
        raise InputError(f"unit '{name}' is not known. {near(name, UNITS)}") from None


def currency_of(name: str) -> str:
    """The currency of a unit of money, as CNY of CNY/server; empty for any other unit."""
    return next((currency for currency, units in MONEY.items() if name in units), "")


def convert(value: float, source: str, target: str) -> float:
    """`value` in unit `source`, expressed in unit `target`. Integers stay exact where the result is whole.

    Raises InputError when the two units measure different things.
    """
    a, b = unit(source), unit(target)
    if a.dimension != b.dimension:
        fitting = ", ".join(sorted(n for n, u in UNITS.items() if u.dimension == a.dimension))
        raise InputError(
            f"'{source}' ({a.dimension}) cannot be shown in '{target}' ({b.dimension}). Fitting: {fitting}."
        )
    if a.factor == b.factor:
        return value
    ratio = a.factor / b.factor
    if isinstance(value, int):
        exact = value * ratio
        return exact.numerator if exact.denominator == 1 else float(exact)
    return float(value) * ratio.numerator / ratio.denominator


def number(value: float, spec: str = "") -> str:
    """`value` formatted by a Python format `spec`; without one, whole numbers with commas, others with 4 digits.

    Raises InputError for a value that is not finite or a spec that Python refuses.
    """
    if not math.isfinite(value):
        raise InputError(f"{value} is not a finite number, so it is not printed")
    if not spec:
        spec = ",d" if isinstance(value, int) else ",.4g"
    if not SPEC.fullmatch(spec) or (spec.endswith("d") and not isinstance(value, int)):
        raise InputError(f"format '{spec[:20]}' does not fit {value!r}. Try ',.1f'.")
    text = format(value, spec)
    return text.replace("-", "\u2212")


def quantity(value: float, unit_name: str, spec: str = "") -> str:
    """A number with its unit, held together by a no-break space; a bare ratio prints no unit."""
    label = unit(unit_name).label
    text = number(value, spec)
    if text == "1" and len(label) > len("ms") and label.isalpha() and label.islower():
        label = label.removesuffix("s")  # one layer, two layers
    if not label:
        return text
    return text + NO_BREAK_SPACE + label.replace(" ", NO_BREAK_SPACE)

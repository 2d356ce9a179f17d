"""Which number of the speed model holds for a set-up, and how well it is known."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from k3lib.errors import InputError
from k3lib.facts.catalog import device_kin
from k3lib.facts.constants import SpeedFact, assumed
from k3lib.units import convert

# Units that the equations count in.
UNIT_OF = {"GB/s": "MB/s"}
# What a constant of one card is worth on another of the same architecture, as a spread of its logarithm: hosts, images
# and clocks differ.
KIN_SPREAD = 0.5
# The same of a kernel: two engines' tables of one card differ by six per cent, and clocks and memory differ more.
KERNEL_KIN_SPREAD = 0.15
Key = tuple[str, str]


@dataclass(frozen=True)
class Known:
    """A number, the spread of its logarithm, and how it is known. key: its parameter and scope in the tables."""

    value: float
    spread: float
    key: Key
    how: str


Table = Mapping[Key, Known]


def known(row: SpeedFact, how: str) -> Known:
    """A row as a number in the equations' units."""
    unit = UNIT_OF.get(row.unit, row.unit)
    low, high = (row.value if end is None else end for end in (row.low, row.high))
    spread = math.log(high / low) / 2 if low > 0 and high > low else 0.0
    return Known(float(convert(row.value, row.unit, unit)), spread, (row.parameter, row.scope), how)


def table(*fits: Iterable[SpeedFact]) -> dict[Key, Known]:
    """All numbers: the assumed ones, and in their place those of each fit, the later before the earlier."""
    rows = {(r.parameter, r.scope): known(r, r.grade) for r in assumed()}
    for fit in fits:
        rows |= {(r.parameter, r.scope): known(r, "fitted") for r in fit}
    return rows


def architecture(device: str) -> str:
    """The family of cards that run the same kernels; the card itself where it has none."""
    row = device_kin().get(device)
    return row.architecture if row else device


def engine_family(engine: str) -> str:
    """The engine without its version: vllm-2026-07 is vllm."""
    return engine.split("-")[0]


def engine_scope(engine: str, device: str) -> str:
    """The scope of what an engine takes on a card."""
    return f"{engine_family(engine)}@{device}"


def pick(numbers: Table, parameter: str, *scopes: str) -> Known:
    """The number of the first scope that has one, else of no scope. Raises InputError without any."""
    for scope in (*scopes, ""):
        if (parameter, scope) in numbers:
            return numbers[parameter, scope]
    raise InputError(f"data/speed.csv has no '{parameter}'")


def of_engine(numbers: Table, parameter: str, engine: str, device: str) -> Known:
    """What an engine takes on a card: measured there, else on a card of its kind, else on any card, else assumed."""
    exact = numbers.get((parameter, engine_scope(engine, device)))
    if exact:
        return exact
    family = engine_family(engine)
    same = [n for (p, scope), n in numbers.items() if p == parameter and scope.startswith(f"{family}@")]
    kin = [n for n in same if architecture(n.key[1].partition("@")[2]) == architecture(device)]
    if kin:
        return _mean(kin, KIN_SPREAD, "taken over from a card of its kind")
    return pick(numbers, parameter)


def of_nics(numbers: Table, network: str, nics: int) -> Known:
    """The rate of one network card where so many of a node are used: fitted, between fitted ones or as in the largest
    fitted number, or assumed.
    """
    exact = numbers.get(("nic_rate", f"{network}@{nics}nics"))
    if exact:
        return exact
    start = f"{network}@"
    fitted = sorted((int(scope.removeprefix(start).removesuffix("nics")), n)
                    for (p, scope), n in numbers.items() if p == "nic_rate" and scope.startswith(start))  # fmt: skip
    if not fitted or nics < fitted[0][0]:
        return pick(numbers, "nic_rate", network)
    counts, rates = [math.log(n) for n, _ in fitted], [math.log(x.value) for _, x in fitted]
    value = math.exp(float(np.interp(math.log(nics), counts, rates)))
    spread = math.hypot(max(x.spread for _, x in fitted), KIN_SPREAD)
    return Known(value, spread, ("nic_rate", network), "taken over from other numbers of network cards")


def measured(numbers: Table, device: str) -> bool:
    """Whether whole runs on this very card went into a fit."""
    return any(parameter == "layer_us" and scope.endswith(f"@{device}") for parameter, scope in numbers)


def widened(number: Known, more: float) -> Known:
    """The number, less well known."""
    return replace(number, spread=math.hypot(number.spread, more))


def _mean(numbers: list[Known], more: float, how: str) -> Known:
    logs = [math.log(n.value) for n in numbers]
    middle = sum(logs) / len(logs)
    apart = max(abs(x - middle) for x in logs)
    spread = math.sqrt(max(n.spread for n in numbers) ** 2 + more**2 + apart**2)
    return Known(math.exp(middle), spread, numbers[0].key, how)

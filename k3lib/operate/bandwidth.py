"""What the output becomes when the network between servers is slower than it should be."""

from __future__ import annotations

from dataclasses import dataclass, replace

from k3lib.calibrate.predict import numbers
from k3lib.calibrate.spread import override
from k3lib.deploy import constants as co
from k3lib.deploy.setup import constants
from k3lib.deploy.speed import Question, answer, passes_of

RATES, STARTS = ("nic_rate", "hop_rate"), ("exchange_start_us", "hop_start_us")


@dataclass(frozen=True)
class Slower:
    """Output in tok/s, and over that with a sound network."""

    output_tps: float
    share: float


def slower_network(asked: Question, bandwidth: float = 1.0, latency: float = 1.0) -> Slower:
    """The output with a share of the network's bandwidth, and with start-ups so many times as long."""
    table = numbers()
    sound = answer(asked, table).output_tps
    moved: co.Table = table
    for names, factor in ((RATES, bandwidth), (STARTS, latency)):
        for name in names:
            moved = override(asked, moved, name, constants(asked.setup, table)[name] * factor)
    output = answer(asked, moved).output_tps
    return Slower(output, output / sound)


def one_network_card(asked: Question) -> Question:
    """The same load with one network card a server in use."""
    return replace(asked, passes=passes_of(replace(asked.setup, nics=1)))

"""A cluster and a parallel layout, read from the short forms that people write: 4x8xh20-96 and tp8,pp4."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields

from k3lib.errors import InputError, near
from k3lib.facts.catalog import DeviceFact, devices

MOST = 4096
Hardware = Mapping[tuple[str, str], DeviceFact]


@dataclass(frozen=True)
class Cluster:
    """nodes x cards_per_node cards of one device."""

    nodes: int
    cards_per_node: int
    device: str

    @property
    def cards(self) -> int:
        """All cards."""
        return self.nodes * self.cards_per_node

    def __str__(self) -> str:
        return f"{self.nodes}x{self.cards_per_node}x{self.device}"


def parse_cluster(text: str, hardware: Hardware | None = None) -> Cluster:
    """NODESxCARDSxDEVICE, e.g. 4x8xh20-96. Raises InputError with the near device name.

    hardware: device facts, if not those of data/hardware.csv.
    """
    match = re.fullmatch(r"(\d+)x(\d+)x(\S+)", text.strip().lower())
    if not match:
        raise InputError(f"--cluster {text}: write it as NODESxCARDSxDEVICE, e.g. 4x8xh20-96")
    nodes, cards, device = int(match[1]), int(match[2]), match[3]
    known = {name for name, _ in hardware or devices()}
    if device not in known:
        raise InputError(f"--cluster {text}: device '{device}' is not in data/hardware.csv. {near(device, known)}")
    if not (1 <= nodes <= MOST and 1 <= cards <= MOST):
        raise InputError(f"--cluster {text}: nodes and cards must be from 1 to {MOST:,}")
    return Cluster(nodes, cards, device)


@dataclass(frozen=True)
class Layout:
    """tp: cards that split each weight. pp: pipeline stages. dp: groups with requests of their own. ep: cards that
    share the experts, 1 for none. dcp: cards that share the tokens of a cache.
    """

    tp: int = 1
    pp: int = 1
    ep: int = 1
    dp: int = 1
    dcp: int = 1

    def __str__(self) -> str:
        return ",".join(f"{f.name}{getattr(self, f.name)}" for f in fields(self) if getattr(self, f.name) > 1) or "tp1"


def parse_layout(text: str) -> Layout:
    """tp8,pp4,ep8,dp2,dcp8 in any order, each at most once. Raises InputError for anything else."""
    names = {f.name for f in fields(Layout)}
    sizes: dict[str, int] = {}
    for part in text.strip().lower().split(","):
        match = re.fullmatch(r"([a-z]+)(\d+)", part.strip())
        if not match:
            raise InputError(f"--layout {text}: '{part}' is not a name with a number, e.g. tp8,pp4")
        if match[1] not in names:
            raise InputError(f"--layout {text}: '{match[1]}' is not known. {near(match[1], names)}")
        if match[1] in sizes:
            raise InputError(f"--layout {text}: {match[1]} stands twice")
        if not 1 <= int(match[2]) <= MOST:
            raise InputError(f"--layout {text}: {match[1]} must be from 1 to {MOST:,}")
        sizes[match[1]] = int(match[2])
    return Layout(**sizes)

"""How long a node takes to get its weights: the slowest of the paths that the bytes go at once. Times in us."""

from __future__ import annotations

import sympy as sp

from k3lib.account import operate_symbols as o
from k3lib.account import symbols as s


def onto_cards_us() -> sp.Expr:
    """Time of the links into the cards, each its own card's weights. Unit: us."""
    return o.card_bytes / s.link_rate


def from_memory_us() -> sp.Expr:
    """Files that lie in main memory: the loader, or the links into the cards. Unit: us."""
    return sp.Max(o.checkpoint_bytes / o.reader_rate, onto_cards_us(), evaluate=False)


def from_drives_us() -> sp.Expr:
    """Files on the node's own drives, spread evenly over them: drives, loader, or links. Unit: us."""
    drives = o.checkpoint_bytes / (o.drives * o.drive_rate)
    return sp.Max(drives, o.checkpoint_bytes / o.reader_rate, onto_cards_us(), evaluate=False)


def from_file_system_us() -> sp.Expr:
    """Files on a file system that every node reads whole: the system for all nodes, a node's loader, or links.

    Unit: us.
    """
    system = o.nodes * o.checkpoint_bytes / o.shared_rate
    return sp.Max(system, o.checkpoint_bytes / o.reader_rate, onto_cards_us(), evaluate=False)


def disk_bytes() -> sp.Expr:
    """Drives that a node needs for so many releases of files. Unit: B."""
    return o.versions * o.checkpoint_bytes / o.fill_share

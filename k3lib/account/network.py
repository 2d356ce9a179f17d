"""What a network test should print between nodes: bus bandwidth, as nccl-tests counts it, from the rate of the lines.

A node must send out (N-1)/N of what each card puts into an exchange, at the least; nccl-tests counts (n-1)/n of it as
the traffic of a card's bus, both twice over for an all-reduce. So the printed figure may exceed the line.
"""

from __future__ import annotations

import sympy as sp

from k3lib.account import operate_symbols as o


def counted_over_sent() -> sp.Expr:
    """Traffic that nccl-tests counts over that which must leave a node, in an exchange of n cards on N nodes. Unit: 1.

    1.875 for 16 cards on two nodes; towards 1 for many nodes.
    """
    return (1 - 1 / o.ranks) / (1 - 1 / o.nodes)


def between_nodes() -> sp.Expr:
    """Bus bandwidth of an all-reduce, all-gather or reduce-scatter: the lines of a node, or NVLink. Unit: MB/s.

    With the least traffic that an exchange can do with, node by node.
    """
    return sp.Min(o.line_rate * o.line_share * counted_over_sent(), o.inside_rate, evaluate=False)


def ring_between_nodes() -> sp.Expr:
    """The same for one ring over all cards, which crosses between nodes with all that is counted. Unit: MB/s."""
    return sp.Min(o.line_rate * o.line_share, o.inside_rate, evaluate=False)


def all_to_all_between_nodes() -> sp.Expr:
    """Bus bandwidth of an all-to-all: each card sends through its share of the node's lines. Unit: MB/s."""
    share = o.line_rate * o.nodes / o.ranks
    return sp.Min(share * o.line_share * counted_over_sent(), o.inside_rate, evaluate=False)


def bus_over_rate(collective: str) -> sp.Expr:
    """Bus bandwidth over bytes by time, as nccl-tests defines it. Unit: 1."""
    part = 1 - 1 / o.ranks
    return 2 * part if collective == "all_reduce" else part

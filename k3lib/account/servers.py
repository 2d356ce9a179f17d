"""What has to go from server to server while a model generates, with the symbols that only this needs."""

from __future__ import annotations

import sympy as sp

from k3lib.account import symbols as s
from k3lib.account.passes import BF16_BYTES

_TOPIC = "between servers"
node_hops = s.quantity("node_hops", "n_{hop}", "1", "hops between stages that lead from one server to another", _TOPIC)
group_nodes = s.quantity("group_nodes", "n_{srv}", "1", "servers over which the cards of one stage are spread", _TOPIC)


def network_bytes_per_token() -> sp.Expr:
    """What a generated token sends from server to server at least: hops between stages, and exchanges of wide groups.

    A hop hands on the rows that attention residuals keep. An all-reduce over n servers sends a row over each of the
    n - 1 ways between them and back, twice a layer. Unit: B/token.
    """
    wide = 4 * s.layers * (group_nodes - 1)
    return s.hidden * BF16_BYTES * (s.residual_rows * node_hops + wide)

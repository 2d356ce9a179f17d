"""The vocabulary of what happens before the first request, in the same list as the other symbols."""

from __future__ import annotations

from k3lib.account.symbols import measure, quantity

_LOADING = "loading"
checkpoint_bytes = quantity("checkpoint_bytes", "B_{files}", "B", "bytes of the files that a node reads", _LOADING)
card_bytes = measure("card_bytes", "B_{card}", "B", "bytes of weights that one card holds", _LOADING)
nodes = quantity("nodes", "N_{node}", "1", "nodes of the deployment", _LOADING)
drives = quantity("drives", "n_{drive}", "1", "drives of a node that are read at once", _LOADING)
drive_rate = measure("drive_rate", r"\beta_{drive}", "MB/s", "rate at which one drive is read", _LOADING)
reader_rate = measure(
    "reader_rate", r"\beta_{load}", "MB/s", "rate at which a node's loader takes files from where they lie", _LOADING
)
shared_rate = measure("shared_rate", r"\beta_{files}", "MB/s", "rate of a file system to all nodes together", _LOADING)
versions = quantity("versions", "n_{rel}", "1", "releases that are kept", _LOADING)
fill_share = measure("fill_share", r"\phi_{fill}", "1", "share of a drive that files may take", _LOADING)

_NETWORK = "network tests"
ranks = quantity("ranks", "n", "cards", "cards of a network test", _NETWORK)
line_rate = measure("line_rate", r"\beta_{line}", "MB/s", "rate of a node's network cards together, one way", _NETWORK)
line_share = measure("line_share", r"\eta_{line}", "1", "share of it that an exchange reaches", _NETWORK)
inside_rate = measure(
    "inside_rate", r"\beta_{in}", "MB/s", "bus bandwidth of the same exchange inside one node", _NETWORK
)

_RUNS = "length of a run"
mean_share = measure("mean_share", r"\epsilon_{mean}", "1", "how near to the truth a measured mean must be", _RUNS)
length_variation = measure("length_variation", r"v_{length}", "1", "deviation of single values over their mean", _RUNS)
confidence_width = measure("confidence_width", r"z_{mean}", "1", "standard errors to each side", _RUNS)

_REHEARSAL = "rehearsal"
part_layer_us = measure("part_layer_us", r"t_{layer}", "us", "time that one more layer takes in a step", _REHEARSAL)
part_rest_us = measure("part_rest_us", r"t_{rest}", "us", "time of a step beside its layers", _REHEARSAL, zero=True)

"""Tables for the terminal."""

from __future__ import annotations

from k3lib.models.model import Model
from k3lib.models.weights import WeightAccount
from k3lib.units import convert


def _sizes(value: int) -> str:
    return f"{value:>22,} B {convert(value, 'B', 'GB'):>10,.2f} GB {convert(value, 'B', 'GiB'):>10,.2f} GiB"


def weight_table(model: Model, account: WeightAccount, published: int | None) -> str:
    """The weight account as lines of text: every group, the total, and what was published."""
    width = max(len(name) for name in [*account.groups, "published"]) + 2
    lines = [
        f"{model.name}: {account.params:,} parameters, {account.active_params:,} used per token, "
        f"{account.tensors:,} tensors",
        "",
    ]
    lines += [f"{name:<{width}}{_sizes(size)}" for name, size in account.groups.items()]
    lines += [f"{'total':<{width}}{_sizes(account.bytes)}"]
    if published is not None:
        lines += [f"{'published':<{width}}{_sizes(published)}   difference {account.bytes - published:,} B"]
    lines += [
        "",
        f"cache of a token: {account.kv_bytes_per_token:,} B; state of a sequence: "
        f"{account.state_bytes_per_sequence:,} B (one replica; BF16 tokens, FP32 state)",
    ]
    if account.indexer_bytes_per_token:
        lines += [f"keys of the indexers: {account.indexer_bytes_per_token:,} B a token more, at BF16"]
    if model.ignored:
        lines += [f"ignored at your word: {', '.join(model.ignored)}"]
    return "\n".join(lines)

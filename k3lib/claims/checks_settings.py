"""Claims on an engine's options and settings: set beside what engines know, the ledger, and the speed model."""

from __future__ import annotations

from k3lib.choose.outcome import load_of
from k3lib.claims.verdict import Part, decided
from k3lib.claims.words import FEW, MANY, SMALL, shown
from k3lib.claims.world import RULES, Check, World
from k3lib.deploy.cuts import cuts
from k3lib.deploy.ledger import Line
from k3lib.deploy.plan import Plan
from k3lib.deploy.speed import answer, question
from k3lib.facts.claims import Claim, known_of, option_of
from k3lib.facts.variants import offload, variants
from k3lib.units import GIBI, KILO

# What is wrong with an option that the article's command has, or lacks.
FAULTS = {
    "absent": "is not known and stops the start",
    "mismatch": "does not go with files in MXFP4",
    "needed": "is missing, and without it the start stops",
}


def _free_gib(plan: Plan) -> float:
    return plan.stages[plan.tightest].free[0] / GIBI


def graphs_line(plan: Plan) -> Line:
    """What captured graphs take of the tightest card."""
    return next(line for line in plan.stages[plan.tightest].lines if line.name == "captured graphs")


def command_starts(w: World, c: Claim) -> tuple[Part, ...]:
    """The doubtful options of the article's command, and whether the plan behind it fits."""
    asked = [option_of("vllm", "--swap-space"), *(known_of("vllm", x) for x in ("--quantization awq", "--nnodes"))]
    faults = [row for row in asked if row.state in FAULTS]
    sources = [x for row in asked for x in row.source_ids]
    says = "; ".join(f"{row.item} {FAULTS[row.state]}" for row in faults)
    plan = w.plan(utilisation=w.said("A35.share_int4"), max_model_len=round(w.said("A36.max_model_len")))
    return (
        decided(f"In vLLM {asked[0].version}: {says}." if faults else "Every option is known.", not faults, sources),
        decided("The plan behind it fits." if plan.fits else plan.reason, plan.fits, RULES, core=False),
    )


def shares_of_card(w: World, c: Claim) -> tuple[Part, ...]:
    """The plan at both shares."""
    high, low = w.said("A35.share_int4"), w.said("A35.share_fp8")
    first, second = w.plan(utilisation=high), w.plan("fp8", utilisation=low)
    if second.fits:
        says = f"At {low:.2f} FP8 fits."
    else:
        short = shown(-_free_gib(second), "GiB", ",.1f")
        says = f"At {low:.2f} FP8 lacks {short} a card: a lower share gives weights less room."
    return (
        decided(
            f"At {high:.2f} the released files leave {shown(_free_gib(first), 'GiB', ',.1f')} a card.",
            first.fits,
            RULES,
        ),
        decided(says, second.fits, RULES),
    )


def start_context(w: World, c: Claim) -> tuple[Part, ...]:
    """Whether a longer limit takes anything from the cache."""
    short, long = (w.plan(max_model_len=round(w.said(f"A36.{name}"))) for name in ("max_model_len", "longer"))
    taken = _free_gib(short) - _free_gib(long)
    at_once = long.caches.max_concurrency if long.caches else 0.0
    says = (
        f"A limit of {shown(w.said('A36.longer'), 'tokens')} takes {shown(taken, 'GiB', ',.1f')} of the cache: "
        "it is one "
        f"pool, which holds {at_once:.0f} such requests at once."
    )
    return (
        decided(f"Requests of {shown(w.said('A36.max_model_len'), 'tokens')} fit.", short.fits, RULES),
        decided(says, taken > 0 or at_once < 1, RULES, core=False),
    )


def swap_space(w: World, c: Claim) -> tuple[Part, ...]:
    """Whether the engine has the option."""
    row = option_of("vllm", "--swap-space")
    has = row.state == "present"
    says = f"vLLM {row.version} {'has' if has else 'has no'} --swap-space"
    return (decided(says + ("." if has else "; with it the server does not start."), has, row.source_ids),)


def cut_length(w: World, c: Claim) -> tuple[Part, ...]:
    """What a shorter longest request gives back."""
    before = w.plan(max_model_len=round(w.said("A43.length_before")))
    after = round(w.said("A43.length_after"))
    cut = next(one for one in cuts(before) if one.settings.max_model_len == after)
    held = before.caches.max_concurrency if before.caches else 0.0
    first = (
        f"It gives back {shown(cut.gives_gib, 'GiB', ',.1f')}: the pool is sized by the memory, not by the longest "
        "request."
    )
    second = f"Of requests so much shorter {cut.concurrency:.0f} fit instead of {held:.0f}."
    return (
        decided(first, cut.gives_gib > 0, RULES),
        decided(second, cut.concurrency > held, RULES, core=False),
    )


def lower_share(w: World, c: Claim) -> tuple[Part, ...]:
    """What a lower share does for memory inside it and outside, and whether there is swap space."""
    high, low = w.said("A35.share_int4"), w.said("A35.share_fp8")
    inside = _free_gib(w.plan(utilisation=low)) - _free_gib(w.plan(utilisation=high))
    outside = (high - low) * w.base.capacity / GIBI
    swap = option_of("vllm", "--swap-space")
    first = (
        f"From {high:.2f} to {low:.2f} it frees {shown(outside, 'GiB', ',.1f')} outside the share, where graphs and "
        "workspaces may run short."
    )
    second = f"Where weights or cache run short it does harm: the cache loses {shown(-inside, 'GiB', ',.1f')}."
    third = f"vLLM {swap.version} has {'a' if swap.state == 'present' else 'no'} swap space."
    return (
        decided(first, outside > 0, RULES),
        decided(second, inside >= 0, RULES, core=False),
        decided(third, swap.state == "present", swap.source_ids),
    )


def last_resorts(w: World, c: Claim) -> tuple[Part, ...]:
    """Whether both ways exist, and whether a cheaper cut was left out."""
    cut = next(one for one in cuts(w.base) if one.settings.chunk_tokens)
    fewer = [row for row in variants().values() if row.kind == "gguf"]
    outside = [
        row for row in offload().values() if row.kind == "run" and row.model == w.k3.name and row.metric == "decode"
    ]
    sources = [x for row in (*fewer, *outside) for x in row.source_ids]
    first = (
        f"{len(fewer)} files of fewer bits are published, and {len(outside)} runs of K3 with experts outside the cards."
    )
    second = (
        f"Before that, prefill passes of {cut.settings.chunk_tokens:,} tokens give back "
        f"{shown(cut.gives_gib, 'GiB', ',.1f')} a card."
    )
    return (
        decided(first, bool(fewer and outside), sources),
        decided(second, cut.gives_gib <= 0, RULES, core=False),
    )


def chat_settings(w: World, c: Claim) -> tuple[Part, ...]:
    """Whether a shorter limit changes what a client waits for, and whether chunks are an option."""
    load = load_of(w.workload, FEW)
    lengths = (round(w.said(f"A43.{name}")) for name in ("length_before", "length_after"))
    plans = (w.plan(layout=w.layout_plain, max_model_len=n) for n in lengths)
    before, after = (answer(question(plan, load), w.numbers).ttft_mean_ms for plan in plans)
    chunks = option_of("vllm", "--enable-chunked-prefill")
    says = (
        f"With a shorter limit a client waits {shown(after / KILO, 's', '.2f')} for the first token, with the "
        "longer one "
        f"{shown(before / KILO, 's', '.2f')}: it only lets more requests run."
    )
    return (
        decided(
            f"Prompts in chunks are an option of vLLM {chunks.version}, on by default.",
            chunks.state == "present",
            chunks.source_ids,
        ),
        decided(says, after < before * (1 - SMALL), w.speed_sources),
    )


def kept_without_graphs(w: World, clients: int) -> float:
    """Share of the output that is left without graphs."""
    return w.output_tps(w.layout_plain, clients, graphs=False) / w.output_tps(w.layout_plain, clients)


def eager_mode(w: World, c: Claim) -> tuple[Part, ...]:
    """What graphs take, and what is lost without them."""
    graphs = graphs_line(w.base)
    one, many = (kept_without_graphs(w, n) for n in (1, MANY))
    says = f"It leaves {one:.2f} of the output with one client and {many:.2f} with {MANY}, by the speed model."
    return (
        decided(f"It saves {shown(graphs.gib, 'GiB', ',.1f')} a card.", graphs.bytes > 0, ["mm_h200_logs"]),
        decided(says, min(one, many) > 1 - SMALL, w.speed_sources),
    )


def graphs_off(w: World, c: Claim) -> tuple[Part, ...]:
    """What graphs take beside what the article keeps spare, and what is lost without them."""
    graphs, spare = graphs_line(w.base), w.said("A25.spare_per_card", "B")
    kept = kept_without_graphs(w, MANY)
    small = graphs.bytes < spare and w.base.fits
    first = f"Graphs take {shown(graphs.gib, 'GiB', ',.1f')} a card"
    first += ", less than the article's own reserve, and the plan fits with them." if small else "."
    return (
        decided(first, not small, ["mm_h200_logs"]),
        decided(f"Without them {kept:.2f} of the output of {MANY} clients is left.", kept > 1 - SMALL, w.speed_sources),
    )


CHECKS: dict[str, Check] = {
    check.__name__: check
    for check in (
        command_starts,
        shares_of_card,
        start_context,
        swap_space,
        cut_length,
        lower_share,
        last_resorts,
        chat_settings,
        eager_mode,
        graphs_off,
    )
}

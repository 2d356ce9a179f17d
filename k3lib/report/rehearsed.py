"""The rehearsal on one server as the book shows it: rows of tables, results, commands, and sentences."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from k3lib.calibrate.behind import main_sources
from k3lib.choose.deployed import MOST_RUNNING
from k3lib.deploy.caches import Settings
from k3lib.deploy.load import Load
from k3lib.deploy.plan import Plan
from k3lib.deploy.search import sized
from k3lib.deploy.speed import Options, Question, question
from k3lib.engines.layout import Cluster
from k3lib.errors import InputError
from k3lib.facts.named import NamedLoad
from k3lib.models.model import Model
from k3lib.operate import acceptance as ac
from k3lib.operate import network as nw
from k3lib.operate import rehearsal as rh
from k3lib.ranges import Range
from k3lib.report import alternatives as ra
from k3lib.report.compare import in_range, listed
from k3lib.report.trail import cell
from k3lib.results import record
from k3lib.units import GIBI, number

PER_CENT = 100


def rehearsed(model: Model, cluster: Cluster, engine: str, max_model_len: int) -> tuple[rh.Rehearsal | None, str]:
    """The rehearsal on one server of a cluster, or the reason why there is none."""
    try:
        settings = Settings(max_model_len=max_model_len, max_num_seqs=MOST_RUNNING)
        return rh.rehearsal(model, cluster, engine, settings), ""
    except InputError as error:
        return None, str(error)


def scaled_steps(
    part: rh.Rehearsal, whole: tuple[Plan, Options] | None, passes: Iterable[int], load: NamedLoad
) -> list[rh.Scaled]:
    """Steps of the part scaled to the whole, by requests of a pass; those without a speed are left out.

    whole: the plan beside which they stand; with one request alone only one of its passes is at work.
    """
    found = []
    for clients in passes:
        try:
            beside = _whole(whole, clients, load) if whole else None
            found.append(rh.scaled(part, beside, clients, load.isl, load.osl))
        except InputError:
            continue
    return found


def _whole(whole: tuple[Plan, Options], clients: int, load: NamedLoad) -> Question:
    plan, how = whole
    many = Load(load.isl, load.osl, clients if clients == 1 else clients * rh.passes_at_work(plan))
    return question(sized(plan, many), many, how)


def holds_words(part: rh.Rehearsal | None, reason: str) -> str:
    """What one server holds, as the end of a sentence."""
    if part is None:
        return f"no part of the model that could be tried: {reason}."
    if part.whole:
        return "the whole model, so that the rehearsal leaves nothing of it out."
    share = f"{PER_CENT * part.share:.0f} % of the bytes"
    return f"the first {part.layers} of {part.held.of_layers} layers with all experts for sure, {share}."


def scaled_words(steps: Sequence[rh.Scaled]) -> str:
    """What the step of the part says of the whole, in a sentence; empty where there is none."""
    if not steps:
        return ""
    one = steps[0]
    at = one.scaled_ms
    beside = f"; the plan itself is predicted at {number(one.whole_ms.value, '.0f')} ms" if one.whole_ms else ""
    return (f"Scaled to all layers its step means {number(at.value, '.0f')} ms a token for one request "
            f"({number(at.low, '.0f')} to {number(at.high, '.0f')} ms){beside}.")  # fmt: skip


def scaled_meaning(steps: Sequence[rh.Scaled], plan: Plan) -> str:
    """What is compared in the table of scaled steps."""
    if not any(one.whole_ms for one in steps):
        return "There is no plan with a speed to set the scaled step beside."
    at_work = rh.passes_at_work(plan)
    if at_work == 1:
        return "The plan has one stage and one copy, so that its pass is that of the part with more layers."
    return (f"The plan has {at_work} passes at work at once, one for each stage of each copy. So its step beside "
            f"several requests a pass is that of {at_work} times as many clients.")  # fmt: skip


def scaled_rows(steps: Iterable[rh.Scaled]) -> list[list[str]]:
    """Rows of the table of scaled steps."""
    rows = []
    for one in steps:
        key, sources = f"pilot.scaled.c{one.clients}", main_sources(one.asked)
        part = ra.ranged(f"{key}.part", one.part.tpot_ms, "ms", sources)
        half = ra.plain(f"{key}.half", one.half_ms, "ms", sources)
        layer = ra.plain(f"{key}.layer", one.layer_us, "us", sources)
        rest = ra.plain(f"{key}.rest", one.rest_us, "us", sources)
        whole = record(f"{key}.whole", one.scaled_ms.value, unit="ms", grade="derived", low=one.scaled_ms.low,
                       high=one.scaled_ms.high, inputs=[layer, rest])  # fmt: skip
        row = [f"{one.clients}", in_range(part, ",.1f"), cell(half, "ms", ",.1f"), cell(layer, "us", ",.0f"),
               cell(rest, "us", ",.0f"), in_range(whole, ",.1f")]  # fmt: skip
        if one.whole_ms is None or one.difference is None:
            rows.append([*row, ra.DASH])
            continue
        predicted = ra.ranged(f"{key}.predicted", one.whole_ms, "ms", sources)
        ra.plain(f"{key}.difference", one.difference, "1", sources)
        rows.append([*row, in_range(predicted, ",.1f")])
    return rows


def cut_rows(part: rh.Rehearsal | None) -> list[list[str]]:
    """The two ways to cut a model for one server."""
    if part is None:
        return [["none fits", *[ra.DASH] * 4]]
    held, sure = part.held, part.plan.stages[part.plan.tightest].free[0] / GIBI
    cuts = [
        ("first layers, all experts, for sure", part.layers, held.of_layers, part.share, sure),
        ("first layers, all experts", held.layers, held.of_layers, held.share_with_layers, held.free_with_layers_gib),
        ("all layers, fewer experts", held.experts, held.of_experts, held.share_with_experts,
         held.free_with_experts_gib),
    ]  # fmt: skip
    return [
        [label, f"{kept}", f"{of}", f"{PER_CENT * share:.0f}", f"{free:.1f}"] for label, kept, of, share, free in cuts
    ]


def folder(layers: int) -> str:
    """Where the files of so many layers lie, in the commands."""
    return f"/models/Kimi-K3-{layers}"


def start(part: rh.Rehearsal, max_model_len: int) -> str:
    """The commands that cut the files and start the parts, with the flags that the layout and the length ask for."""
    lines = []
    for plan in dict.fromkeys((part.layers, len(part.half.model.mixers))):
        place = "/models/Kimi-K3" if plan == part.held.of_layers else folder(plan)
        if place == folder(plan):
            lines.append(f"k3 reduce /models/Kimi-K3 {place} --layers {plan}")
        place, length, tp = f"{place} --trust-remote-code", max_model_len, part.layout.tp
        engine = (f"vllm serve {place} \\\n  --tensor-parallel-size {tp} --max-model-len {length}"
                  if part.plan.engine.paged else
                  f"python -m sglang.launch_server --model-path {place} \\\n"
                  f"  --tp-size {tp} --context-length {length}")  # fmt: skip
        lines.append(f"{engine} 2>&1 | tee server-{plan}.log")
    return "\n".join(lines)


def limit_rows(part: rh.Rehearsal, nics: int, load_time: Range, passes: Iterable[int], load: NamedLoad,
               sources: Sequence[str]) -> list[list[str]]:  # fmt: skip
    """What each run of the rehearsal must show: limits and what is expected."""
    loaded = record("pilot.limit.load_seconds", load_time.value, unit="s", grade="derived", low=load_time.low,
                    high=load_time.high, sources=sources)  # fmt: skip
    rows: list[list[str]] = [["start", "ready; files loaded in, s", f"at most {number(load_time.high, ',.0f')}",
                              in_range(loaded, ",.0f")]]  # fmt: skip
    cards = part.cluster.cards
    inside = nw.expected("all_reduce", part.cluster, cards, 1, nics) if cards > 1 else None
    if inside:
        r = ra.ranged("pilot.limit.busbw", inside.busbw_gbs, "GB/s", inside.sources)
        rows.append(["nccl-tests", "all-reduce, GB/s", f"at least {number(inside.busbw_gbs.low, ',.0f')}",
                     in_range(r, ",.0f")])  # fmt: skip
    for line in ac.memory(part.plan):
        r = ra.ranged(f"pilot.limit.{line.what.replace(',', '').replace(' ', '-').lower()}", line.expected,
                      "requests" if "requests" in line.what else line.unit, sources)  # fmt: skip
        spec = ",.1f" if line.unit != "tokens" else ",.0f"
        exact = line.expected.low == line.expected.high
        limit = "as computed" if exact else f"at least {number(line.expected.low, spec)}"
        rows.append(["log", f"{line.what}{', GiB' if line.unit == 'GiB' else ''}", limit, in_range(r, spec)])
    for clients in passes:
        rows += _step(ac.step(part.plan, Options(), Load(load.isl, load.osl, clients)), clients)
    return rows


def _step(one: ac.Step, clients: int) -> list[list[str]]:
    run = f"{clients} client{'s' if clients > 1 else ''}"
    if one.speed is None or one.asked is None:
        return [[run, one.reason, ra.DASH, ra.DASH]]
    rows = []
    sources = main_sources(one.asked)
    for key, what, unit, at, spec in (
        ("tpot_ms", "time per token, ms", "ms", one.speed.tpot_ms, ",.1f"),
        ("ttft_ms", "first token, ms", "ms", one.speed.ttft_ms_mean, ",.0f"),
        ("output_tps", "output, tok/s", "tok/s", one.speed.output_tps, ",.0f"),
    ):
        r = ra.ranged(f"pilot.limit.c{clients}.{key}", at, unit, sources)
        limit = f"at least {number(at.low, spec)}" if unit == "tok/s" else f"at most {number(at.high, spec)}"
        rows.append([run, what, limit, in_range(r, spec)])
    return rows


def run_commands(part: rh.Rehearsal, passes: Iterable[int], load: NamedLoad) -> str:
    """The runs of the rehearsal as commands."""
    place = "/models/Kimi-K3" if part.whole else folder(part.layers)
    lines = [next(iter(nw.commands(part.cluster).values())), f"k3 read inside.txt --cluster {part.cluster}"]
    for clients in passes:
        one = ac.step(part.plan, Options(), Load(load.isl, load.osl, clients))
        lines += [
            f"vllm bench serve --model {place} --dataset-name random --ignore-eos \\",
            f"  --random-input-len {load.isl} --random-output-len {load.osl} \\",
            f"  --max-concurrency {clients} --num-prompts {one.requests or clients}",
        ]
    return "\n".join(lines)


def cost_rows(prices: Iterable[rh.Price]) -> list[list[str]]:
    """Ways to get the server, with what the hours cost."""
    rows: list[list[str]] = []
    for one in prices:
        r = record(f"pilot.cost.{one.key}", one.cny.value, unit="CNY", grade="assumed", low=one.cny.low,
                   high=one.cny.high, sources=one.sources)  # fmt: skip
        rows.append([one.label, in_range(r, ",.0f")])
    return rows


def cost_words(prices: Sequence[rh.Price]) -> str:
    """What the rehearsal costs, rented and owned, in a phrase."""
    if not prices:
        return "nobody published what such a server costs"
    rents = [p for p in prices if p.key != "own"]
    by_hour = [p for p in rents if p.key.endswith("hour")] or sorted(rents, key=lambda p: p.cny.value)[:1]
    parts = [f"{number(p.cny.value, ',.0f')} CNY ({number(p.cny.low, ',.0f')} to {number(p.cny.high, ',.0f')}) for "
             f"{p.label}" for p in by_hour]  # fmt: skip
    for own in (p for p in prices if p.key == "own"):
        parts.append(f"{number(own.cny.value, ',.0f')} CNY as its part of a month of a server of one's own")
    return listed(parts)

"""What the claims are checked against: the 32 H20 of article A, Kimi K3 as released, prices, and the speed model.

Everything is worked out once and read by many checks. Figures and prices can be others than the project's, so that a
changed number can change a verdict.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from k3lib.calibrate.behind import main_sources
from k3lib.calibrate.predict import numbers
from k3lib.choose import alternatives as ch
from k3lib.choose import ways as wy
from k3lib.choose.deployed import MOST_RUNNING, deployed, space_of
from k3lib.choose.outcome import load_of
from k3lib.claims.verdict import Part, between
from k3lib.deploy import constants as co
from k3lib.deploy import variants as var
from k3lib.deploy.caches import Settings
from k3lib.deploy.holds import Held, held
from k3lib.deploy.plan import Plan, make_plan
from k3lib.deploy.search import Found, search
from k3lib.deploy.speed import Question, answer, question
from k3lib.engines.layout import Cluster, parse_layout
from k3lib.facts.benchmarks import Run, runs
from k3lib.facts.catalog import ArticleFigure, article_figures, device_fact
from k3lib.facts.claims import Claim
from k3lib.facts.clusters import NamedCluster, cluster
from k3lib.facts.prices import Price, prices
from k3lib.facts.workloads import Workload, workload
from k3lib.models.model import Model, load_model
from k3lib.models.weights import WeightAccount, weight_account
from k3lib.ranges import Range, point
from k3lib.units import BITS_PER_BYTE, GIBI, TEBI, convert

MODEL, REFERENCE = "kimi-k3", "deepseek-v3"
DEVICE, ENGINE, PLAN = "h20-96", "vllm", "h20x32"
# As many cards of the same kind, with more arithmetic.
KIN = "h200x32"
# The workload that both articles think of first: batches with nobody waiting.
WORKLOAD = "offline-batch"
RULES = ("vllm_033", "mm_h200_logs")
# Settings that give weights most room: most of the card, small passes, short requests.
LEAST = {"utilisation": 0.97, "max_model_len": 4096, "chunk_tokens": 2048}


@dataclass(frozen=True)
class World:
    """figures: what the articles state, by 'claim_id.quantity'. table: prices."""

    figures: Mapping[str, ArticleFigure] = field(default_factory=article_figures)
    table: Mapping[str, Price] = field(default_factory=prices)

    def said(self, key: str, unit: str = "") -> float:
        """A figure of an article, in a unit of its dimension."""
        row = self.figures[key]
        return float(convert(row.value, row.unit, unit or row.unit))

    def point(self, key: str, unit: str = "") -> Range:
        """A figure of an article as a range of one point."""
        return point(self.said(key, unit))

    def span(self, key: str, unit: str = "") -> Range:
        """The figures `key`_low to `key`_high."""
        return between(self.said(f"{key}_low", unit), self.said(f"{key}_high", unit))

    @cached_property
    def k3(self) -> Model:
        """Kimi K3 as released."""
        return load_model(MODEL)

    @cached_property
    def account(self) -> WeightAccount:
        """Its weights."""
        return weight_account(self.k3)

    @cached_property
    def reference(self) -> WeightAccount:
        """The weights of the 671B model that article B sets beside it."""
        return weight_account(load_model(REFERENCE))

    def as_form(self, form: str) -> WeightAccount:
        """Kimi K3's weights with the experts stored in another format."""
        return weight_account(load_model(MODEL, form))

    @cached_property
    def row(self) -> NamedCluster:
        """The plan of 32 H20 as a named cluster."""
        return cluster(PLAN)

    @cached_property
    def cluster(self) -> Cluster:
        """Its cards."""
        return deployed(self.row).cluster

    @cached_property
    def layout(self) -> str:
        """The layout that article A recommends."""
        tp, pp, ep = (round(self.said(f"A20.{name}")) for name in ("tp", "pp", "ep"))
        return f"tp{tp},pp{pp},ep{ep}"

    @cached_property
    def layout_plain(self) -> str:
        """The same without expert parallelism."""
        return ",".join(part for part in self.layout.split(",") if not part.startswith("ep"))

    def plan(self, form: str | None = None, layout: str = "", **settings: object) -> Plan:
        """Kimi K3 on the plan's cards under vLLM, in the article's layout or another.

        Raises InputError for a layout or settings that cannot be.
        """
        made = replace(Settings(), **settings)  # type: ignore[arg-type]
        return make_plan(load_model(MODEL, form), self.cluster, parse_layout(layout or self.layout), ENGINE, made)

    @cached_property
    def base(self) -> Plan:
        """That plan as the engine comes."""
        return self.plan()

    @cached_property
    def fp8(self) -> tuple[Held, Held]:
        """FP8 on the plan's cards in the layout with most room: as the engine comes, and with what gives most room."""
        least = replace(Settings(), **LEAST)  # type: ignore[arg-type]
        return held(MODEL, "fp8", self.cluster, ENGINE, Settings()), held(MODEL, "fp8", self.cluster, ENGINE, least)

    def shown_memory(self, nominal: bool = False) -> float:
        """Memory of a card in B, as the driver shows it or as its name has it."""
        fact = device_fact(DEVICE, "memory_nominal" if nominal else "memory_shown")
        return float(convert(fact.value, fact.unit, "B"))

    @cached_property
    def workload(self) -> Workload:
        """Batches: the workload of which the plan gives most."""
        return workload(WORKLOAD)

    @cached_property
    def numbers(self) -> co.Table:
        """The numbers of the speed model."""
        return numbers()

    def asked(
        self, layout: str, clients: int, on: str = PLAN, graphs: bool = True, of: Workload | None = None
    ) -> Question:
        """So many clients of a workload, batches unless another is named, on a layout of a named cluster."""
        one, load = deployed(on), load_of(of or self.workload, clients)
        settings = Settings(max_num_seqs=MOST_RUNNING, max_model_len=load.isl + load.osl, graphs=graphs)
        plan = make_plan(self.k3, one.cluster, parse_layout(layout), ENGINE, settings, one.options.hardware)
        return question(plan, load, one.options)

    def output_tps(self, layout: str, clients: int, on: str = PLAN, graphs: bool = True) -> float:
        """Output of so many clients of batches in tok/s."""
        return answer(self.asked(layout, clients, on, graphs), self.numbers).output_tps

    @cached_property
    def speed_sources(self) -> tuple[str, ...]:
        """What a predicted speed of the plan stands on."""
        return tuple(main_sources(self.asked(self.layout_plain, self.workload.concurrency)))

    @cached_property
    def ranked(self) -> tuple[Found, ...]:
        """Every layout that serves the workload on the plan's cards, most output first."""
        there = space_of(PLAN, self.k3, ENGINE)
        return tuple(one for one in search(there, load_of(self.workload), self.numbers) if one.served)

    @cached_property
    def place(self) -> ch.Place:
        """The plan as the chapter on alternatives has it."""
        load, many = self.workload, self.workload.concurrency
        settings = Settings(max_num_seqs=MOST_RUNNING)
        return ch.Place(self.k3, self.cluster, ENGINE, settings, load.isl, load.osl, (1, many))

    @cached_property
    def in_memory(self) -> tuple[wy.InMemory, int]:
        """The release on one server with the article's larger main memory, and the clients that a service has at least.

        Memory sold as 1 TB holds 1,024 GiB.
        """
        chat = workload("online-chat")
        least = round(chat.facts["concurrency"].low or chat.concurrency)
        host_gib = self.said("A11.host_memory_high", "TB") * TEBI / GIBI
        return wy.in_memory(self.place, 1, host_gib, "mxfp4", (1, least), chat.tpot_ms or 0.0, least), least

    @cached_property
    def bits_cards(self) -> int:
        """Fewest of the plan's cards, in whole servers, for a file of article B's few bits; 0 for more than are tried.

        Only the file's bytes are set against the memory, so that a real layout may need more.
        """
        size = self.said("B22.low_bits") * self.account.params / BITS_PER_BYTE
        at = self.place
        fit = var.fewest_by_bytes("mxfp4", size, DEVICE, at.settings, ENGINE, ch.MOST_SERVERS, at.per_server)
        return fit.in_servers or 0

    @cached_property
    def released_cards(self) -> int:
        """Fewest of the plan's cards, in whole servers, that hold the released files; one more than the most tried."""
        return ch.released_cards(self.place) or self.cluster.cards_per_node * ch.MOST_SERVERS + 1


Check = Callable[[World, Claim], tuple[Part, ...]]


def device_range(device: str, quantity: str, unit: str) -> tuple[Range, tuple[str, ...]]:
    """A property of a card with its range, and its sources."""
    fact = device_fact(device, quantity)
    return fact.range_in(unit), fact.source_ids


def k3_runs(device: str, serving: str = "aggregated", **columns: str) -> list[Run]:
    """Measured runs of K3 on a card that have an output and were not left out, by other columns of the table."""
    kind = MODEL, device, serving
    return [
        r
        for r in runs()
        if (r.model, r.device, r.serving) == kind
        and (r.use != "out" and r.output_tps)
        and all(getattr(r, name) == value for name, value in columns.items())
    ]

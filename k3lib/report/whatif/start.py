"""The page of a scenario: everything it knows, and the settings that it opens with, as one script."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from k3lib.calibrate.predict import scales
from k3lib.choose.costed import BATCHES
from k3lib.choose.deployed import MOST_RUNNING, deployed
from k3lib.choose.scene import Scene, scene
from k3lib.cost.bill import POWER
from k3lib.cost.rent import CLASSES
from k3lib.deploy.caches import Settings
from k3lib.deploy.passes import LAUNCH
from k3lib.deploy.plan import ENGINES
from k3lib.errors import NoSpeedError
from k3lib.facts import named
from k3lib.facts.clusters import NamedCluster, Region, clusters
from k3lib.facts.planned import NIC_GBIT, alike
from k3lib.facts.price_parameters import current
from k3lib.facts.scenario import Scenario
from k3lib.facts.workloads import Workload
from k3lib.report.whatif import bills, expressions, facts, model
from k3lib.report.whatif.names import MOST_NICS, PAGE, SCRIPT

PARAMETERS = ("cards", "cards_per_node", "device", "nics", "superpod", "engine", "weights", "ttft_goal_s",
              "tpot_goal_ms")  # fmt: skip
PRODUCTS = ("servers", "superpod")
# Lines of the ledger, and what the page puts together of them.
LINES = ("routed experts", "scales of the experts", "padding of the experts", "shared experts and dense MLPs",
         "split weights", "token tables", "copied weights", "padding of projections", "load-time peak",
         "runtime and communicators", "activations", "attention-residual rows", "captured graphs", "kernel workspace",
         "other weights", "working memory", "left for caches")  # fmt: skip


def of_scenario(scenario: Scenario, folder: Path) -> None:
    """Write the script of a scenario's page, and what its form is made of. Raises InputError where it has none."""
    here = scene(**{name: getattr(scenario, name) for name in PARAMETERS})
    region: Region = "cn" if scenario.region == "cn" else "other"
    given = bills.Prices(current(scenario.prices, scenario.price_file), region)
    rows = _rows(here)
    laid = _facts(here, rows, given)
    laid["start"] = _start(here, scenario)
    functions = [*expressions.of_model(here.model), *expressions.of_costs(_lines(laid["prices"]["lines"]))]
    model.write(folder / SCRIPT, laid, functions, _texts(laid))
    page = {name: laid[name] for name in ("start", "workloads", "labels", "prices", "services", "classes")}
    (folder / PAGE).write_text(json.dumps(page, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8")


def _rows(here: Scene) -> dict[str, NamedCluster]:
    """One cluster of each kind of card that the page offers, the scenario's own first."""
    rows = {here.plan.device: here.plan}
    for row in clusters().values():
        if row.kind in PRODUCTS:
            rows.setdefault(row.device, row)
    return rows


def _facts(here: Scene, rows: dict[str, NamedCluster], given: bills.Prices) -> dict[str, Any]:
    """All that the script knows, apart from what it opens with."""
    cards = {}
    for device, row in rows.items():
        try:
            cards[device] = facts.of_card(here.model, row)
        except NoSpeedError:  # a card whose arithmetic nobody published
            continue
    first, *others = cards.values()
    shared = {name: known for name, known in first["constants"].items()
              if all(card["constants"][name] == known for card in others)}  # fmt: skip
    for card in cards.values():
        card["constants"] = {name: known for name, known in card["constants"].items() if name not in shared}
    families = sorted({card["kernel"] for card in cards.values() if card["whole"]})
    priced = [row for row in clusters().values() if row.device in cards and row.kind in PRODUCTS]
    return {
        "model": facts.of_model(here.model), "engines": facts.of_engines(), "cards": cards,
        "constants": shared,
        "kernels": facts.of_kernels(families), "terms": [*expressions.terms(), LAUNCH], "scales": scales(),
        "most_running": MOST_RUNNING, "nic_gbit": NIC_GBIT, "classes": CLASSES,
        "prices": bills.of_clusters(priced, given), "services": bills.of_services(given),
        "workloads": _workloads(here), "best": _best(here, cards), "batches": BATCHES,
        "labels": {device: _label(device, row) for device, row in rows.items() if device in cards},
    }  # fmt: skip


def _texts(laid: Mapping[str, Any]) -> list[str]:
    """Words of the facts that the page shows: they are translated where they are shown."""
    units = {known[4] for known in laid["prices"]["inputs"].values()}
    situations = {words for card in laid["cards"].values() for words in card["situation"].values()}
    labels = [*laid["labels"].values(), *(one["label"] for one in laid["workloads"].values())]
    return [*labels, *laid["classes"].values(), *laid["services"]["words"].values(), *laid["terms"], *LINES,
            *sorted(units), *sorted(situations)]  # fmt: skip


def _label(device: str, row: NamedCluster) -> str:
    """What a card is called in the book: the name of a cluster of it without the number."""
    _, _, name = (alike(device) or row).short.partition(" ")
    return name


def _workloads(here: Scene) -> dict[str, Any]:
    """Named workloads and loads: tokens of a request, and how many at once; of loads the first workload's."""
    found = {name: {"label": one.label, **_asked(one)} for name, one in here.workloads.items()}
    for load_id, load in named.loads().items():
        found[load_id] = {"label": load.label, "isl": load.isl, "osl": load.osl, "cached": 0}
    return found


def _asked(one: Workload) -> dict[str, int]:
    return {"isl": one.isl, "osl": one.osl, "cached": one.cached, "concurrency": one.concurrency}


def _best(here: Scene, cards: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """The layouts that serve workloads best, as the book's chapters found them: by card, nodes and engine."""
    found = {}
    for row in here.clusters:
        if row.device in cards and row.kind in PRODUCTS:
            entries = {name: here.entry(row, name) for name in here.workloads}
            found[f"{row.device} {row.nodes} {here.engine}"] = {n: e.layout for n, e in entries.items() if e.fits}
    return found


def _start(here: Scene, scenario: Scenario) -> dict[str, Any]:
    """The scenario's plan under the workload of which it gives most output, in the layout that serves it best."""
    entries = {name: here.entry(here.plan, name) for name in here.workloads}
    first = max((e for e in entries.values() if e.seen), key=lambda e: e.seen.output_tps.value if e.seen else 0.0)
    asked = _asked(here.workloads[first.workload_id])
    return {
        "device": here.plan.device, "nodes": here.plan.nodes, "nics": min(_nics(here.plan), MOST_NICS),
        "engine": here.engine, "layout": first.layout, "workload": first.workload_id, **asked,
        "max_model_len": max(scenario.max_model_len, asked["isl"] + asked["osl"]),
        "memory_share": Settings().utilisation or _share(here.engine), "busy": scenario.utilisation,
    }  # fmt: skip


def _nics(row: NamedCluster) -> int:
    """Network cards of a node as the speed model counts them."""
    return deployed(row).options.nics or row.cards // row.nodes


def _share(engine: str) -> float:
    return ENGINES[engine].rule("utilisation").value


def _lines(lines: list[list[Any]]) -> dict[str, tuple[str, str]]:
    """Bases and currencies of the lines of bills, by the name of their function; a sum of goods beside each."""
    kinds = {(line[2], line[3]) for line in lines if line[2] != POWER}
    kinds |= {("goods", currency) for _, currency in kinds}
    return {f"line_{basis.replace('-', '_')}_{currency}": (basis, currency) for basis, currency in sorted(kinds)}

"""All tables of the project in one place, to be listed and to be checked."""

from __future__ import annotations

from collections.abc import Callable, Collection

from k3lib.facts import (
    acceptance,
    benchmarks,
    catalog,
    claims,
    cluster_prices,
    clusters,
    constants,
    decisions,
    evidence,
    flags,
    learning,
    named,
    operating,
    peers,
    price_parameters,
    prices,
    problems,
    timings,
    variants,
    workloads,
)
from k3lib.facts.paths import DATA

CALIBRATION, TRIALS = DATA / "calibration" / "constants.csv", DATA / "calibration" / "trials.csv"


def _all_rules() -> list[catalog.EngineRule]:
    return [rule for rules in catalog.engine_rules().values() for rule in rules.values()]


# Every table of the project: what a row of it is, and how it is loaded.
TABLES: dict[str, tuple[str, Callable[[], Collection[object]]]] = {
    "sources.csv": ("where facts come from", lambda: catalog.sources().values()),
    "hardware.csv": ("a property of an accelerator card", lambda: catalog.devices().values()),
    "devices.csv": ("a card's kin, whose kernel times stand for it", lambda: catalog.device_kin().values()),
    "engines.csv": ("a number by which an engine splits, pads or reserves", _all_rules),
    "memory_logs.csv": ("a value that an engine printed at start-up", evidence.memory_logs),
    "cases.csv": ("a memory outcome that a user met", evidence.cases),
    "benchmarks.csv": ("a measured run of a load on a deployment", benchmarks.runs),
    "observations.csv": ("a measured value beside the runs", benchmarks.observations),
    "kernels.csv": ("a kernel at one size on one card", timings.kernel_times),
    "interconnect.csv": ("an exchange between cards", timings.exchange_times),
    "speed.csv": ("a number of the speed model before any fit", constants.assumed),
    "calibration/constants.csv": ("a number of the speed model, fitted", lambda: constants.read(CALIBRATION)),
    "calibration/trials.csv": ("a run beside a prediction that did not see it", lambda: constants.trials(TRIALS)),
    "peers.csv": ("an error that is published of another tool", peers.peer_errors),
    "prices.csv": ("what a thing costs, a rate, or a share of a cost", lambda: prices.prices().values()),
    "price_parameters.csv": (
        "a parameter that sets a price",
        lambda: price_parameters.price_parameters().values(),
    ),
    "cluster_prices.csv": ("a line of a cluster's bill", cluster_prices.cluster_prices),
    "plans.csv": ("a deployment that readers ask about", lambda: named.plans().values()),
    "loads.csv": ("a load by name", lambda: named.loads().values()),
    "clusters.csv": ("a cluster that is compared", lambda: clusters.clusters().values()),
    "cluster_facts.csv": ("a thing known of a whole cluster", lambda: clusters.cluster_facts().values()),
    "availability.csv": ("whether a cluster can be had in a region", lambda: clusters.availability().values()),
    "workloads.csv": ("a property of a workload", workloads.workload_facts),
    "workload_labels.csv": ("a workload in a few words", workloads.workload_labels),
    "decisions.csv": ("a situation in which somebody decides", lambda: decisions.decisions().values()),
    "variants.csv": ("Kimi K3 in another format or with fewer experts", lambda: variants.variants().values()),
    "quality.csv": ("what a format, fewer experts or a cache's data type is worth", variants.quality),
    "offload.csv": ("experts outside the cards, measured or supposed", lambda: variants.offload().values()),
    "engine_starts.csv": ("how an engine is started at all", lambda: flags.engine_starts().values()),
    "engine_flags.csv": ("a flag, a variable or a remark, and when it holds", flags.engine_flags),
    "old_advice.csv": ("a flag that older texts give, and what holds now", flags.old_advice),
    "storage_load.csv": ("a measured load of a model's files onto cards", acceptance.storage_loads),
    "acceptance.csv": ("a number that an acceptance rests on", lambda: acceptance.parameters().values()),
    "problems.csv": ("a number that an exercise gives", lambda: problems.problem_numbers().values()),
    "glossary.csv": ("a word that the glossary explains", learning.glossary),
    "learning_paths.csv": ("a page on the way of somebody new", learning.learning_paths),
    "claims.csv": ("a figure that an article states, to be checked", lambda: catalog.article_figures().values()),
    "metrics.csv": ("a metric that an engine, a card or a server offers", operating.metric_rows),
    "alerts.csv": ("an alert: what it watches, from which level, and what to do", operating.alerts),
    "panels.csv": ("a line of the dashboard", operating.panels),
    "troubles.csv": ("a cause of trouble, its sign, its test and its remedy", operating.troubles),
    "article_claims.csv": ("what an article claims, and how it is checked", lambda: claims.claims().values()),
    "claim_evidence.csv": (
        "what an engine, a maker or a guide has or says, where a claim asks for it",
        claims.evidence,
    ),
    "models/checkpoints.csv": ("a model with public weights and its published size", catalog.checkpoints),
    "models/storage.csv": ("how weights are stored where the configuration does not tell", catalog.storage_facts),
    "models/kimi-k3.tensors.csv": ("a tensor pattern of the released Kimi K3", catalog.inventory),
}


def check_all() -> None:
    """Load every table once. Raises InputError for the first bad row."""
    for _, load in TABLES.values():
        load()
    catalog.model_names()

"""A named cluster as the search and the speed model see it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from k3lib.deploy.caches import Settings
from k3lib.deploy.search import Space, space
from k3lib.deploy.setup import domain
from k3lib.deploy.speed import Options
from k3lib.engines.layout import Cluster, Hardware, parse_cluster
from k3lib.facts import clusters as facts
from k3lib.facts.catalog import devices
from k3lib.facts.planned import NIC_GBIT
from k3lib.models.model import Model

# Requests that an engine is let run at once: more than any workload here has.
MOST_RUNNING = 1024


@dataclass(frozen=True)
class Deployed:
    """A named cluster, its cards, and what its plans leave open."""

    row: facts.NamedCluster
    cluster: Cluster
    options: Options


@lru_cache(maxsize=64)
def deployed(cluster: str | facts.NamedCluster) -> Deployed:
    """A cluster, or the name of one in data/clusters.csv. Raises InputError with the near name."""
    row = facts.cluster(cluster) if isinstance(cluster, str) else cluster
    nics = max(1, round(row.nics * row.nic_gbit / NIC_GBIT)) if row.nics and row.nic_gbit else None
    cards = parse_cluster(row.shape)
    return Deployed(row, cards, Options(nics=nics, hardware=with_domain(cards, row.domain_cards)))


def with_domain(cluster: Cluster, domain_cards: int, hardware: Hardware | None = None) -> Hardware | None:
    """Device facts with the cluster's own domain, where the card's is another; as given where it is the same.

    hardware: device facts, None for those of data/hardware.csv.
    """
    facts = hardware or devices()
    if domain(facts, cluster) == domain_cards:
        return hardware
    key = (cluster.device, "scale_up_domain")
    fact = facts[key].model_copy(update={"value": domain_cards, "low": None, "high": None, "grade": "assumed"})
    return {**facts, key: fact}


_SPACES: dict[tuple[object, ...], Space] = {}


def space_of(cluster: str | facts.NamedCluster, model: Model, engine: str, settings: Settings | None = None) -> Space:
    """Every legal layout of a cluster; made once for a model, an engine and settings."""
    settings = settings or Settings(max_num_seqs=MOST_RUNNING)
    one = deployed(cluster)
    key = (one.row, id(model), engine, settings)
    if key not in _SPACES:
        _SPACES[key] = space(model, one.cluster, engine, settings, one.options)
    return _SPACES[key]

"""Renting a cluster, by class of rental: the rent, and what who rents pays beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from k3lib.cost.bill import RENT, bill, stands_for
from k3lib.cost.choice import Choice
from k3lib.cost.own import Ownership, of_bill
from k3lib.errors import NoPriceError
from k3lib.facts.cluster_prices import lines_of
from k3lib.facts.clusters import NamedCluster
from k3lib.facts.prices import Price

CLASSES = {
    "bare_metal": "bare metal by the month",
    "market": "the market of card rents",
    "reserved": "reserved for a year",
    "cloud_month": "public cloud by the month",
    "cloud_hour": "public cloud by the hour",
}
NOT_COUNTED = (
    "storage beyond the rented servers' own",
    "what rent will cost later: today's price holds",
    "a search for servers when a contract ends",
    "what slower or worse answers cost their users",
)


def rental_classes(of: str | NamedCluster) -> tuple[str, ...]:
    """Classes in which a cluster's cards are let, in the order of CLASSES; none where no price was published."""
    try:
        _, like, _ = stands_for(of)
    except NoPriceError:
        return ()
    offered = {row.options["class"] for row in lines_of(like.cluster_id).get(RENT, [])}
    return tuple(name for name in CLASSES if name in offered)


def rental(
    of: str | NamedCluster,
    rent_class: str,
    table: Mapping[str, Price] | None = None,
    choice: Choice | None = None,
) -> Ownership:
    """What renting a cluster costs: the rent of every card at all hours, and the operations that stay with the tenant.

    Power, place, maintenance and spares are in the rent. Raises NoPriceError where the class is not let.
    """
    if rent_class not in rental_classes(of):
        offered = ", ".join(rental_classes(of)) or "none"
        name = of if isinstance(of, str) else of.cluster_id
        raise NoPriceError(f"{name} has no published rent of class '{rent_class}'. Published: {offered}.")
    return replace(of_bill(bill(of, table, choice, rent_class)), not_counted=NOT_COUNTED)


def rentals(
    of: str | NamedCluster, table: Mapping[str, Price] | None = None, choice: Choice | None = None
) -> dict[str, Ownership]:
    """Every class in which a cluster's cards are let where the choice's region allows, each in figures."""
    found = {}
    for name in rental_classes(of):
        try:
            found[name] = rental(of, name, table, choice)
        except NoPriceError:
            if choice is None or choice.region is None:
                raise
    return found

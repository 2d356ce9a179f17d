"""All claims with what was found, and how many of each topic hold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from k3lib.claims import (
    checks_budget,
    checks_cards,
    checks_evidence,
    checks_model,
    checks_network,
    checks_options,
    checks_price,
    checks_settings,
    checks_speed,
    checks_weights,
)
from k3lib.claims.verdict import VERDICTS, Finding, Verdict
from k3lib.claims.world import Check, World
from k3lib.errors import InputError, near
from k3lib.facts.claims import Claim, claims

FAMILIES = (
    checks_budget,
    checks_cards,
    checks_evidence,
    checks_model,
    checks_network,
    checks_options,
    checks_price,
    checks_settings,
    checks_speed,
    checks_weights,
)
CHECKS: dict[str, Check] = {name: check for family in FAMILIES for name, check in family.CHECKS.items()}


def finding(claim: Claim, world: World) -> Finding:
    """A claim with what was found. Raises InputError for a check that does not exist."""
    if claim.check not in CHECKS:
        raise InputError(
            f"data/article_claims.csv ({claim.claim_id}): no check '{claim.check}'. {near(claim.check, CHECKS)}"
        )
    return Finding(claim, CHECKS[claim.check](world, claim))


def findings(world: World) -> dict[str, Finding]:
    """Every claim with what was found, by id, in the order of the table."""
    return {name: finding(claim, world) for name, claim in claims().items()}


def counted(found: Iterable[Finding]) -> dict[Verdict, int]:
    """How many claims have each verdict."""
    verdicts = [one.verdict for one in found]
    return {verdict: verdicts.count(verdict) for verdict in VERDICTS}


def by_topic(found: Mapping[str, Finding]) -> dict[str, dict[Verdict, int]]:
    """The same by topic, in the order in which topics come up."""
    topics = dict.fromkeys(one.claim.topic for one in found.values())
    return {topic: counted(one for one in found.values() if one.claim.topic == topic) for topic in topics}

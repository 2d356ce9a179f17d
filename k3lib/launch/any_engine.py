"""The start of a plan under any engine, with a reason in the place of an error."""

from __future__ import annotations

from k3lib.deploy.caches import Settings
from k3lib.deploy.plan import make_plan
from k3lib.engines.layout import Cluster, parse_layout
from k3lib.errors import InputError
from k3lib.launch.commands import build, started
from k3lib.launch.fitting import with_nearest
from k3lib.launch.place import Place
from k3lib.launch.published import published
from k3lib.launch.records import Launch
from k3lib.models.model import Model


def start_of(engine: str, model: Model, cluster: Cluster, layout: str, settings: Settings, place: Place) -> Launch:
    """The commands of an engine for a plan, those that were published of it, or why there are none.

    Raises InputError for an engine that is not known.
    """
    start = started(engine)
    if start.way != "plan":
        return published(engine, place)
    try:
        plan = make_plan(model, cluster, parse_layout(layout), engine, settings)
        return build(with_nearest(plan), place)
    except InputError as error:
        return Launch(start, None, str(error))

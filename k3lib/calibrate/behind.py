"""What stands behind a prediction: the sources of all numbers that went into it."""

from __future__ import annotations

from collections.abc import Iterable

from k3lib.calibrate import own
from k3lib.calibrate.predict import numbers
from k3lib.calibrate.store import calibration
from k3lib.deploy import constants as co
from k3lib.deploy import curves as cv
from k3lib.deploy.setup import OF_ENGINE, constants
from k3lib.deploy.speed import Question
from k3lib.facts.catalog import device_kin, devices
from k3lib.facts.constants import SpeedFact, assumed
from k3lib.facts.timings import exchange_times, kernel_times


def sources_of(asked: Question) -> list[str]:
    """Every source of a prediction: the model, the card, the kernels, the exchanges, the runs behind its numbers."""
    setup = asked.setup
    device = setup.cluster.device
    found = set(main_sources(asked)) | set(setup.model.sources)
    found |= _behind({known.key for known in constants(setup, numbers()).values.values()})
    found |= {s for q in ("hbm_bandwidth", "bf16_dense") if (device, q) in devices()
              for s in devices()[device, q].source_ids}  # fmt: skip
    found |= {s for r in exchange_times() if r.collective == "all_reduce" and r.use == "yes" and r.nodes == 1
              and r.message_bytes and r.time_us and r.implementation.startswith(("custom", "nccl"))
              for s in r.source_ids}  # fmt: skip
    return sorted(found)


def main_sources(asked: Question) -> list[str]:
    """The sources that a prediction stands on first: the model, the experts' kernel, and runs of the engine."""
    setup = asked.setup
    device, family = setup.cluster.device, co.engine_family(setup.engine.name)
    known = constants(setup, numbers()).values
    keys = {known[name].key for name in ("layer_us", "launch_us", "kernel_decode", "kernel_prompt")}
    if not co.measured(numbers(), device):
        keys |= {k for k in _rows() if k[0] in OF_ENGINE and k[1].startswith(f"{family}@")
                 and co.architecture(k[1].partition("@")[2]) == co.architecture(device)}  # fmt: skip
    found = _behind(keys) | set(setup.model.sources[:1])
    kin = device_kin().get(device)
    like = {device, kin.kernels_like if kin else ""}
    if setup.kernel != cv.ROOFLINE:
        found |= {s for r in kernel_times() if r.kernel == "experts" and r.device in like for s in r.source_ids}
    return sorted(found)


def _rows() -> dict[co.Key, SpeedFact]:
    return {(r.parameter, r.scope): r for r in (*assumed(), *calibration().fitted, *own.constants())}


def _behind(keys: Iterable[co.Key]) -> set[str]:
    """Sources of the numbers of these keys."""
    rows = _rows()
    return {source for key in keys if key in rows for source in rows[key].source_ids}

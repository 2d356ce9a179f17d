"""Why the figures of a run need care: checks that hold for every tool."""

from __future__ import annotations

from dataclasses import replace

from k3lib.reading.records import MEASURES, RunReading

# Ratios beyond which a figure is doubted; each is stated in its message.
QUEUE_RATIO = 2.5  # mean over median TTFT
BURST_SHARE = 0.1  # of a request's time: below it the wait is that of a common start
LONG_WAIT_MS = 30_000.0
FEW_REQUESTS = 10
FEW_ROUNDS = 4  # requests for each place at once
FAR_BELOW_CAP = 0.7
UNIT_RATIO = 50.0
RATE_GAP = 0.05


def doubted(run: RunReading) -> RunReading:
    """The run with warnings and remarks of the checks that it does not pass."""
    warnings = [w for check in (_requests, _waiting, _concurrency, _units, _rates) for w in check(run)]
    remarks = []
    if run.peak_concurrency and run.max_concurrency and run.peak_concurrency > run.max_concurrency:
        remarks.append(
            f"the client's peak of {run.peak_concurrency:g} requests at once is counted in whole seconds and exceeds "
            f"its cap of {run.max_concurrency:,}"
        )
    done = run.completed
    if _at_once(run) and done and run.max_concurrency and FEW_REQUESTS <= done < FEW_ROUNDS * run.max_concurrency:
        remarks.append(
            f"{done:,} requests for {run.max_concurrency:,} at once: start and end are inside the measured time, "
            "so the rates are some 10 to 25 % low"
        )
    if (ratio := _uneven(run)) and _brief(run):
        remarks.append(
            f"mean TTFT is {ratio:.1f} times the median, and little beside a request's time: the burst of the first "
            "requests, which all start at once"
        )
    return replace(run, warnings=(*run.warnings, *warnings), remarks=(*run.remarks, *remarks))


def _requests(run: RunReading) -> list[str]:
    found = []
    if run.failed:
        total = run.failed + (run.completed or 0)
        found.append(f"{run.failed:,} of {total:,} requests failed; rates and times are those of the others")
    if run.completed == 0:
        found.append("no request was completed")
    elif run.completed is not None and run.completed < FEW_REQUESTS:
        found.append(f"only {run.completed:,} completed request{'s' * (run.completed > 1)}: a probe, no statistics")
    if not any(getattr(run, name) for name in MEASURES):
        found.append("no rate and no time above zero")
    return found


def _uneven(run: RunReading) -> float | None:
    """Mean over median TTFT where it is large."""
    mean, median = run.ttft_mean_ms, run.ttft_median_ms
    enough = run.completed is None or run.completed >= FEW_REQUESTS
    return mean / median if enough and mean and median and mean > QUEUE_RATIO * median else None


def _brief(run: RunReading) -> bool:
    """Whether the wait for the first token is a small part of a request's time."""
    return bool(run.e2e_mean_ms and run.ttft_mean_ms and run.ttft_mean_ms < BURST_SHARE * run.e2e_mean_ms)


def _at_once(run: RunReading) -> bool:
    """Whether requests start as soon as the cap lets them, not at a rate."""
    return run.request_rate is None


def _waiting(run: RunReading) -> list[str]:
    found = []
    if (ratio := _uneven(run)) and not _brief(run):
        found.append(
            f"mean TTFT is {ratio:.1f} times the median: part of the requests waited, which is how a full KV pool shows"
        )
    decode = run.tpot_mean_ms * run.osl if run.tpot_mean_ms and run.osl else None
    if decode is None and run.e2e_mean_ms and run.ttft_mean_ms:
        decode = run.e2e_mean_ms - run.ttft_mean_ms
    waited = run.ttft_median_ms if run.ttft_median_ms is not None else run.ttft_mean_ms
    if waited and decode and waited > max(decode, LONG_WAIT_MS):
        found.append(
            f"a request waits {waited / 1000:,.0f} s for its first token and is served for {decode / 1000:,.0f} s: the "
            "load is past what the deployment can hold"
        )
    return found


def _concurrency(run: RunReading) -> list[str]:
    if run.mean_concurrency and run.max_concurrency and run.mean_concurrency < FAR_BELOW_CAP * run.max_concurrency:
        return [
            f"{run.mean_concurrency:.1f} requests ran on average, the cap is {run.max_concurrency:,}: compare with "
            "what ran"
        ]
    return []


def _units(run: RunReading) -> list[str]:
    if not (run.e2e_mean_ms and run.ttft_mean_ms and run.tpot_mean_ms and run.osl and run.osl > 1):
        return []
    expected = run.ttft_mean_ms + run.tpot_mean_ms * (run.osl - 1)
    if not 1 / UNIT_RATIO < run.e2e_mean_ms / expected < UNIT_RATIO:
        return [
            f"a request takes {run.e2e_mean_ms:,.3g} ms, its TTFT and TPOT make {expected:,.3g} ms: are seconds and "
            "milliseconds mixed?"
        ]
    return []


def _rates(run: RunReading) -> list[str]:
    if not (run.duration_s and run.completed and run.osl and run.output_tps):
        return []
    counted = run.completed * run.osl / run.duration_s
    if abs(counted - run.output_tps) > RATE_GAP * max(counted, run.output_tps):
        return [
            f"output {run.output_tps:,.4g} tok/s is not the counted tokens over the time ({counted:,.4g} tok/s): the "
            "token counts differ"
        ]
    return []

"""The vocabulary of estimates by hand, in the same list as the other symbols."""

from __future__ import annotations

from k3lib.account.symbols import measure, quantity

_HAND = "estimates by hand"
pipeline_stages = quantity("pipeline_stages", "n_{pp}", "1", "stages of a pipeline", _HAND)
passes_in_flight = quantity(
    "passes_in_flight", "n_{pass}", "1", "passes that follow one another into a pipeline", _HAND
)
arrivals = measure("arrivals", r"\lambda", "1/s", "requests that arrive in a second", _HAND)
first_s = measure("first_s", "t_{first}", "s", "time until a request's first token", _HAND, zero=True)
token_s = measure("token_s", "t_{token}", "s", "time of each further token of a request", _HAND)
answer_length = measure("answer_length", "N_{ans}", "tokens", "tokens that one request generates", _HAND)
active_weights = measure("active_weights", "P_{act}", "parameters", "weights that a token multiplies", _HAND)
accepted = measure("accepted", r"\ell", "tokens", "tokens that a pass with a draft yields for a request", _HAND)
verify_us = measure("verify_us", "t_{pass}", "us", "time of a pass that checks a draft, or that has none", _HAND)
file_bytes = measure("file_bytes", "b_{file}", "B", "bytes of the files of a model", _HAND)
file_rate = measure("file_rate", r"\beta_{file}", "MB/s", "rate at which one server reads them", _HAND)
readers = quantity("readers", "n_{read}", "1", "servers that each read a share of their own", _HAND)
read_bytes = measure("read_bytes", "b_{read}", "B", "bytes that a step reads on one card", _HAND)

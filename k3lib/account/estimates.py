"""Rules of thumb that people work out on paper: rates, waiting, idle stages, drafts, loading.

They leave out what the model of passes holds, so they are bounds or first guesses; each says which.
"""

from __future__ import annotations

import sympy as sp

from k3lib.account import estimate_symbols as e
from k3lib.account import symbols as s
from k3lib.units import MEGA


def idle_share() -> sp.Expr:
    """Share of the time that a stage of a pipeline waits, where all stages take equally long. Unit: 1.

    The first pass needs n_pp steps to come through, and each later one a step more. Source: GPipe, section 2.3.
    """
    return (e.pipeline_stages - 1) / (e.passes_in_flight + e.pipeline_stages - 1)


def output_tps() -> sp.Expr:
    """Output of requests that all generate at once. Unit: tok/s. An upper bound: none of them waits for its prompt."""
    return s.decode_tokens / e.token_s


def requests_in_flight() -> sp.Expr:
    """Requests that are being served, by Little's law: how many arrive in a second, times how long each stays.

    Unit: requests.
    """
    return e.arrivals * (e.first_s + e.answer_length * e.token_s)


def prompt_s() -> sp.Expr:
    """Time to read a prompt by arithmetic alone: two operations for each weight and token, over all cards. Unit: s.

    A lower bound: no attention, no exchange, no waiting.
    """
    return 2 * e.active_weights * s.prompt_tokens / (s.cards * s.card_rate * s.matrix_share * MEGA)


def draft_gain() -> sp.Expr:
    """By how much a draft makes one request faster, where a pass takes as long with it as without. Unit: 1.

    An upper bound: with many requests a pass that checks drafts takes longer.
    """
    return e.accepted * e.verify_us / (e.verify_us + s.drafted_tokens * s.draft_us)


def loading_s() -> sp.Expr:
    """Time to read a model's files, each server its own share. Unit: s. A lower bound: nothing is repacked."""
    return e.file_bytes / (e.readers * e.file_rate * MEGA)


def used_experts() -> sp.Expr:
    """Different experts of a layer that B tokens use, where all are equally popular. Unit: experts.

    An upper bound: `passes.distinct_experts` has the same with a spread of popularity, which makes them fewer.
    """
    return s.experts * (1 - (1 - s.experts_per_token / s.experts) ** s.decode_tokens)


def reading_us() -> sp.Expr:
    """Time to read bytes from a card's memory at its peak bandwidth. Unit: us. A lower bound."""
    return e.read_bytes / s.card_bandwidth

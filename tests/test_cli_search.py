"""`k3 search` as people type it: the examples as printed, the JSON, and one clear line for what cannot be."""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path

import pytest
from conftest import k3, k3_here, refused, shown
from hypothesis import given
from hypothesis import strategies as st

from k3lib import cli, cli_search
from k3lib.cli_search import parse_limits
from k3lib.deploy.search import Limits, front
from k3lib.errors import InputError
from k3lib.facts.paths import ROOT

Capture = pytest.CaptureFixture[str]
LOAD = ["--isl", "8000", "--osl", "1000", "--concurrency", "16"]
KEYS = {"layout", "fits", "reason", "output_tps", "tpot_ms", "ttft_ms", "cny_per_mtok_output"}


SHOWN = {
    " ".join(one): one
    for text in (cli_search.DESCRIPTION, cli.DESCRIPTION, (ROOT / "USING.md").read_text(encoding="utf-8"))
    for one in shown("search", text)
}


@pytest.mark.parametrize("arguments", SHOWN.values(), ids=SHOWN)
def test_every_example_runs_as_printed(arguments: list[str], capsys: Capture) -> None:
    done = k3_here(capsys, *arguments)
    assert (done.returncode, done.stderr) == (0, "")
    if "--json" in arguments:
        assert json.loads(done.stdout)
    elif "--front" in arguments:
        assert "one user tok/s" in done.stdout
    else:
        assert "best is" in done.stdout and "clients of" in done.stdout


def test_examples_are_where_people_look(capsys: Capture) -> None:
    help_text = k3_here(capsys, "search", "--help").stdout
    assert len(shown("search", help_text)) == 4 and shown("search", k3_here(capsys, "--help").stdout)
    assert len(shown("search", (ROOT / "USING.md").read_text(encoding="utf-8"))) >= 2


def test_the_json_has_what_was_agreed_best_first() -> None:
    done = k3("search", "--cluster", "h20x32", *LOAD, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    rows = json.loads(done.stdout)
    assert all(set(row) >= KEYS for row in rows) and len(rows) > 100
    fits = [row["fits"] for row in rows]
    assert fits == sorted(fits, reverse=True) and {True, False} == set(fits)
    served, rest = rows[: sum(fits)], rows[sum(fits) :]
    for row in served:
        assert row["reason"] == "" and min(row["output_tps"], row["tpot_ms"], row["ttft_ms"], row["copies"]) > 0
    outputs = [row["output_tps"] for row in served]
    assert outputs[1:] == sorted(outputs[1:], reverse=True) and outputs[0] >= 0.97 * max(outputs)
    kept = front([1 / row["tpot_ms"] for row in served], outputs).tolist()
    assert sorted(kept) == [place for place, row in enumerate(served) if row["front"]]
    for row in rest:
        assert "does not fit" in row["reason"] and row["output_tps"] is row["tpot_ms"] is row["ttft_ms"] is None
        assert row["front"] is False


@pytest.mark.parametrize(("rank", "key"), [("tpot", "tpot_ms"), ("ttft", "ttft_ms")])
def test_other_rankings(rank: str, key: str, capsys: Capture) -> None:
    done = k3_here(capsys, "search", "--cluster", "4x8xh20-96", *LOAD, "--rank", rank, "--engine", "sglang", "--json")
    values = [row[key] for row in json.loads(done.stdout) if row["fits"]]
    assert values[1:] == sorted(values[1:]) and values[0] <= 1.03 * min(values)


def test_the_table_says_how_many_fit_and_marks_what_none_beats(capsys: Capture) -> None:
    done = k3_here(capsys, "search", "--cluster", "h20x32", *LOAD, "--slo", "tpot=60ms,ttft=30s", "--all")
    rows = json.loads(k3_here(capsys, "search", "--cluster", "h20x32", *LOAD, "--json").stdout)
    fits = sum(row["fits"] for row in rows)
    assert done.stdout.startswith(
        f"{fits} of {len(rows)} layouts of h20x32 under vllm serve 16 clients of 8,000 + 1,000"
    )
    assert len(re.findall(r"(kept|times over)$", done.stdout, flags=re.MULTILINE)) == fits
    assert len(re.findall(r"^\S+ \* ", done.stdout, flags=re.MULTILINE)) == sum(row["front"] for row in rows)
    assert f"{len(rows) - fits} do not serve it" in done.stdout
    for row in rows:
        assert row["layout"] in done.stdout and row["reason"] in done.stdout
    short = k3_here(capsys, "search", "--cluster", "h20x32", "--isl", "900", "--osl", "9", "--concurrency", "1").stdout
    assert f"... {fits - 12} more; --all prints them" in short and "serve 1 client of 900 + 9 tokens" in short


def test_the_front_goes_up_to_as_many_clients_as_are_asked_for(capsys: Capture) -> None:
    asked = ["search", "--cluster", "h20x32", "--isl", "8000", "--osl", "1000", "--front", "--json"]
    rows = json.loads(k3_here(capsys, *asked, "--concurrency", "20").stdout)
    assert {row["concurrency"] for row in rows} <= {1, 2, 4, 8, 16, 20} and rows[-1]["concurrency"] == 20
    speeds, outputs = [row["tps_per_user"] for row in rows], [row["output_tps"] for row in rows]
    assert speeds == sorted(speeds, reverse=True) and outputs == sorted(outputs)
    assert all(row["tps_per_user"] == pytest.approx(1000 / row["tpot_ms"]) for row in rows)
    named = json.loads(
        k3_here(capsys, "search", "--cluster", "h20x32", "--workload", "rag", "--front", "--json").stdout
    )
    assert max(row["concurrency"] for row in named) > 20


def test_a_workload_of_the_readers_own(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(HEADER + OWN, encoding="utf-8")
    mine = ["search", "--cluster", "h20x32", "--workloads", str(path), "--workload", "mine"]
    done = k3_here(capsys, *mine)
    assert done.returncode == 0 and "4 clients of 20,000 + 1,000 tokens, 10,000 of each prompt" in done.stdout
    assert "8 clients of 20,000" in k3_here(capsys, *mine, "--concurrency", "8").stdout


def test_cards_of_the_readers_own_keep_the_clusters_domain(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "cards.csv"
    path.write_text(CARDS + "h100,hbm_bandwidth,3.35,,,TB/s,assumed,2026,me,\n", encoding="utf-8")
    asked = ["search", "--cluster", "floor80x64", *LOAD, "--engine", "sglang", "--json"]
    assert k3_here(capsys, *asked, "--hardware", str(path)).stdout == k3_here(capsys, *asked).stdout


# --- what cannot be ------------------------------------------------------------

HEADER = "workload,quantity,value,low,high,unit,grade,as_of,source_id,note\n"
OWN = """\
mine,isl,20000,,,tokens,assumed,2026,me,
mine,osl,1000,,,tokens,assumed,2026,me,
mine,hit,0.5,,,1,assumed,2026,me,
mine,concurrency,4,,,requests,assumed,2026,me,
"""
CARDS = "device,quantity,value,low,high,unit,grade,as_of,source_id,note\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        # clusters
        (["--cluster", "6x5xh20-96"], ["--cluster 6x5xh20-96", "nodes of 5", "Take nodes of 1, 2, 4, 8: 4x8xh20-96"]),
        (["--cluster", "6.4x5xh20-96"], ["NODESxCARDSxDEVICE, e.g. 4x8xh20-96"]),
        (["--cluster", "32xh20-96"], ["NODESxCARDSxDEVICE, e.g. 4x8xh20-96"]),
        (["--cluster", "32"], ["no named cluster", "Known: a3x64"]),
        (["--cluster", ""], ["no named cluster"]),
        (["--cluster", "h20x23"], ["Did you mean 'h20x32'?"]),
        (["--cluster", "4x8xh20-69"], ["Did you mean 'h20-96'?"]),
        (["--cluster", "0x8xh20-96"], ["must be from 1"]),
        # loads
        (["--isl", "0"], ["--isl 0: must be at least 1"]),
        (["--isl", "9" * 400], ["at most 1,000,000,000 tokens"]),
        (["--osl", "-5"], ["--osl -5: must be at least 1"]),
        (["--osl", "1"], ["--osl 2 or more"]),
        (["--concurrency", "0"], ["--concurrency 0: must be at least 1"]),
        (["--concurrency", "100000"], ["at most 8,192 clients"]),
        (["--isl", "1.5"], ["argument --isl: invalid int value: '1.5'"]),
        (["--workload", "rag"], ["--workload rag has its own --isl"]),
        (["--workloads", "missing.csv"], ["say which by --workload NAME"]),
        # limits
        (["--slo", "ttft=5"], ["'5' is not a time above 0 in s or ms"]),
        (["--slo", "tpot=-1ms"], ["'-1ms' is not a time above 0"]),
        (["--slo", "tpot=0s"], ["'0s' is not a time above 0"]),
        (["--slo", "ttft=nan s"], ["'nan s' is not a time above 0"]),
        (["--slo", "ttft=1e999s"], ["'1e999s' is not a time above 0"]),
        (["--slo", "ttft=5s,ttft=6s"], ["ttft stands twice"]),
        (["--slo", "ttf=5s"], ["Did you mean 'ttft'?"]),
        (["--slo", "tpot"], ["'' is not a time above 0"]),
        (["--slo", ""], ["'' is not known"]),
        # what clashes
        (["--front", "--slo", "tpot=50ms"], ["--front", "takes no --slo"]),
        (["--front", "--rank", "ttft"], ["--front", "takes no --rank"]),
        (["--nics", "0"], ["--nics 0: must be from 1"]),
        (["--max-num-seqs", "0"], ["--max-num-seqs 0: must be at least 1"]),
        (["--moe-backend", "trtllm"], ["does not run on hopper"]),
        (["--engine", "vlm"], ["invalid choice: 'vlm'"]),
        (["--rank", "beauty"], ["invalid choice: 'beauty'"]),
        (["--model", "kimi-k33"], ["Did you mean 'kimi-k3'?"]),
        (["--weights", "fp9"], ["Did you mean 'fp8'?"]),
        (["--hardware", "missing.csv"], ["no such file"]),
    ],
    ids=lambda value: " ".join(value)[:40] if value and value[0].startswith("--") else "",
)
def test_what_cannot_be_gets_one_line(arguments: list[str], words: list[str], capsys: Capture) -> None:
    done = k3_here(capsys, "search", "--cluster", "h20x32", *LOAD, *arguments)
    refused(done, *words)
    assert done.stdout == "" and "not foreseen" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--isl", "10", "--osl", "10"], ["--concurrency: is missing", "or --workload NAME"]),
        ([], ["--isl: is missing"]),
        (["--workload", "rga"], ["Did you mean 'rag'?"]),
        (["--workload", "rag", "--concurrency", "0"], ["--concurrency 0: must be at least 1"]),
        (["--workload", "rag", "--workloads", "missing.csv"], ["missing.csv: no such file"]),
        (["--front", "--isl", "10"], ["--osl: is missing"]),
        (["--front", "--isl", "10", "--osl", "10", "--concurrency", "0"], ["--concurrency 0"]),
    ],
)
def test_loads_that_are_not_whole(arguments: list[str], words: list[str], capsys: Capture) -> None:
    done = k3_here(capsys, "search", "--cluster", "h20x32", *arguments)
    refused(done, *words)
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (OWN.replace("mine,isl,20000", "mine,isl,0"), ["mine.csv, row 2", "isl 0: must be at least 1"]),
        (OWN.replace("mine,hit,0.5", "mine,hit,1.5"), ["mine.csv, row 4", "must be from 0 to 1"]),
        (OWN.replace("tokens", "MB"), ["mine.csv, row 2", "Write it in 'tokens'"]),
        (OWN.replace("mine,osl", "mine,oosl"), ["mine.csv, row 3", "Did you mean 'osl'?"]),
        (OWN.replace("mine,concurrency,4,,,requests,assumed,2026,me,\n", ""), ["mine.csv", "'concurrency' is missing"]),
        (OWN + OWN, ["mine.csv, row 6", "the same workload and quantity as row 2"]),
        (OWN.replace("20000", "1e300"), ["at most 1,000,000,000 tokens"]),
        (OWN.replace("mine,", "yours,"), ["workload 'mine' is not known"]),
        ("", ["no rows"]),
    ],
)
def test_workloads_with_a_fault(text: str, words: list[str], tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(HEADER + text, encoding="utf-8")
    done = k3_here(capsys, "search", "--cluster", "h20x32", "--workloads", str(path), "--workload", "mine")
    refused(done, *words)


@pytest.mark.parametrize("front", [[], ["--front"]])
@pytest.mark.parametrize(
    ("cluster", "isl", "words"),
    [
        ("h20x32", "50_000_000", ["requests of 50,000,000 + 1,000 tokens: kimi-k3 takes at most 1,048,576"]),
        ("1x8xh20-96", "1000", ["does not fit: weights need", "GiB on a card of stage", "a card offers"]),
    ],
)
def test_a_workload_that_no_layout_holds(
    cluster: str, isl: str, words: list[str], front: list[str], capsys: Capture
) -> None:
    asked = ["search", "--cluster", cluster, "--isl", isl, "--osl", "1000", "--concurrency", "1", *front]
    refused(k3_here(capsys, *asked), f"no layout of {cluster} serves it", *words)
    done = k3_here(capsys, *asked, "--json")
    refused(done, *words)
    rows = json.loads(done.stdout)
    assert not any(row["fits"] or row["output_tps"] for row in rows) and bool(rows) == (not front)
    assert all(row["reason"] for row in rows)


def test_a_workload_larger_than_the_memory_of_any_layout_says_how_long_one_may_be(
    tmp_path: Path, capsys: Capture
) -> None:
    path = tmp_path / "cards.csv"
    path.write_text(CARDS + "h20-96,memory_shown,64,,,GiB,assumed,2026,me,\n"
                    "h20-96,memory_visible,64,,,GiB,assumed,2026,me,\n", encoding="utf-8")  # fmt: skip
    asked = ["search", "--cluster", "h20x32", "--isl", "1_000_000", "--osl", "1000", "--engine", "sglang",
             "--hardware", str(path)]  # fmt: skip
    for more in (["--concurrency", "1"], ["--front"]):
        done = k3_here(capsys, *asked, *more)
        refused(done, "no layout of h20x32 serves it", "too little for one request of 1,001,000 tokens",
                "the longest request that fits has")  # fmt: skip


def test_goals_that_nobody_meets_name_the_nearest(capsys: Capture) -> None:
    asked = ["search", "--cluster", "h20x32", *LOAD, "--slo", "tpot=1ms,ttft=10ms", "--json"]
    done = k3_here(capsys, *asked)
    best = json.loads(done.stdout)[0]
    refused(done, "no layout of h20x32 keeps to ttft 10 ms and tpot 1 ms", f"Nearest is {best['layout']}: first token "
            f"after {best['ttft_ms'] / 1000:.3g} s, then {best['tpot_ms']:.3g} ms a token")  # fmt: skip
    over = [max(row["ttft_ms"] / 10, row["tpot_ms"]) for row in json.loads(done.stdout) if row["fits"]]
    assert over[0] <= 1.03 * min(over)
    named = k3_here(capsys, "search", "--cluster", "h20x32", "--workload", "rag")
    refused(named, "keeps to ttft 5000 ms, the goals of rag; --slo sets others", "Nearest is")
    assert "times over" in named.stdout


def test_limits_are_read_as_they_are_meant() -> None:
    assert parse_limits("ttft=5s,tpot=50ms") == parse_limits(" tpot=0.05s , ttft=5000ms") == Limits(5000, 50)
    assert parse_limits("tpot=50ms") == Limits(None, 50)
    assert cli_search.said(Limits(5000, 50)) == "ttft 5000 ms and tpot 50 ms"


@given(st.text(alphabet="tfpos=,.0123456789emna -+_", max_size=24) | st.text(max_size=12))
def test_any_text_is_limits_or_a_clear_line(text: str) -> None:
    try:
        found = parse_limits(text)
    except InputError as error:
        assert str(error).startswith("--slo") and "\n" not in str(error)
    else:
        assert all(limit is None or 0 < limit < float("inf") for limit in (found.ttft_ms, found.tpot_ms))


def test_options_have_help() -> None:
    parser = argparse.ArgumentParser()
    cli_search.add_arguments(parser)
    assert all(action.help for action in parser._actions)


def test_the_cost_of_tokens_joins_where_there_is_a_price(capsys: pytest.CaptureFixture[str]) -> None:
    from k3lib.cost.api import Mix
    from k3lib.cost.own import own
    from k3lib.cost.unit import unit_cost
    from k3lib.ranges import point

    asked = ("--isl", "1000", "--osl", "500", "--concurrency", "8")
    assert cli.main(["search", "--cluster", "h20x32", *asked, "--rank", "cost", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    best = rows[0]
    hand = unit_cost(own("h20x32"), point(best["output_tps"]), Mix("x", 1000, 0, 500)).per_mtok_output.value
    assert best["cny_per_mtok_output"] == pytest.approx(hand)
    costs = [row["cny_per_mtok_output"] for row in rows if row["fits"]]
    assert min(costs) >= best["cny_per_mtok_output"] * 0.97 - 1e-9  # the simplest of those that cannot be told apart
    assert all(row["cny_per_mtok_output"] is None for row in rows if not row["fits"])
    assert cli.main(["search", "--cluster", "h20x32", *asked]) == 0
    assert "a million output tokens with their prompts cost about" in capsys.readouterr().out
    assert cli.main(["search", "--cluster", "2x8xb300", *asked, "--rank", "cost"]) == 2
    assert "no published price" in capsys.readouterr().err

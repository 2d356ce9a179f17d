"""Workloads by name: figures as published, a user's own file, and the one clear line for a row that cannot be."""

from __future__ import annotations

import csv
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from conftest import changed_data
from hypothesis import given
from hypothesis import strategies as st

from k3lib.errors import InputError
from k3lib.facts import workloads as wl


@pytest.mark.parametrize(
    ("name", "isl", "osl", "hit", "concurrency"),
    [
        ("offline-batch", 4096, 1024, 0, 512),
        ("online-chat", 12_035, 343 + 2000, 0.40, 118),
        ("rag", 15_325, 149 + 2000, 0.65, 32),
        ("coding-agent", 80_000, 760, 0.94, 16),
        ("million-token", 900_000, 4096, 0, 1),
    ],
)
def test_workloads_are_as_published(name: str, isl: int, osl: int, hit: float, concurrency: int) -> None:
    found = wl.workload(name)
    assert (found.isl, found.osl, found.concurrency) == (isl, osl, concurrency)
    assert (found.cached, found.uncached) == (round(isl * hit), isl - round(isl * hit))
    assert found.label != name and found.sources


def test_what_this_project_assumed_stands_with_a_range() -> None:
    for row in wl.workload_facts():
        if "k3lib_assumed" in row.source_ids:
            assert row.grade in ("assumed", "derived") and row.high is not None, row


def test_ranges_of_workloads_are_as_published() -> None:
    def ends(name: str, quantity: str) -> tuple[float | None, float | None]:
        row = wl.workload(name).facts[quantity]
        return row.low, row.high

    assert ends("offline-batch", "isl") == (2600, 12_000)
    assert ends("offline-batch", "thinking") == (0, 8192)
    assert ends("online-chat", "hit") == (0.37, 0.56)
    assert ends("online-chat", "thinking") == (0, 25_700)
    assert ends("rag", "isl") == (11_587, 38_611)
    assert ends("coding-agent", "hit") == (0.92, 0.97)
    assert ends("million-token", "concurrency") == (1, 4)
    assert (wl.workload("offline-batch").ttft_s, wl.workload("rag").tpot_ms) == (None, None)
    chat = wl.workload("online-chat")
    assert chat.tpot_ms == 50
    in_flight = chat.facts["concurrency"]  # Little's law: one request a second, a second to the first token
    for end, thinking in ((in_flight.low, 0), (in_flight.value, 2000), (in_flight.high, 25_700)):
        assert end == round(1 + (343 + thinking) * 0.050)
    with pytest.raises(InputError, match="Did you mean 'online-chat'"):
        wl.workload("online-chta")


HEADER = "workload,quantity,value,low,high,unit,grade,as_of,source_id,note\n"


def rows(**values: object) -> str:
    """Rows of a workload 'mine'."""
    return "".join(
        f"mine,{quantity},{value},,,{wl.QUANTITY_UNITS[quantity]},assumed,2026,me,\n"
        for quantity, value in values.items()
    )


GOOD = rows(isl=1000, osl=100, concurrency=8, hit=0.5)


def test_a_user_adds_a_workload_and_changes_a_row(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(HEADER + GOOD + "rag,hit,0.3,,,1,measured,2026,me,\n", encoding="utf-8")
    table = wl.workloads_with(path)
    mine = wl.workload("mine", table)
    assert (mine.label, mine.isl, mine.osl, mine.cached, mine.uncached) == ("mine", 1000, 100, 500, 500)
    assert (mine.ttft_s, mine.tpot_ms, mine.sources) == (None, None, ("me",))
    assert table["rag"].facts["hit"].value == 0.3 and table["rag"].isl == wl.workload("rag").isl
    assert table["rag"].label == wl.workload("rag").label
    assert table["online-chat"] == wl.workload("online-chat") and "mine" not in wl.workloads()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (rows(osl=100, concurrency=8), ["(mine)", "'isl' is missing", "in tokens"]),
        (rows(isl=100, concurrency=8), ["(mine)", "'osl' is missing"]),
        (rows(isl=100, osl=8), ["(mine)", "'concurrency' is missing", "in requests"]),
        (GOOD.replace("0.5", "1.5"), ["row 5 (mine / hit)", "from 0 to 1"]),
        (GOOD.replace("0.5,,", "0.5,,40"), ["row 5 (mine / hit)", "hit 40", "from 0 to 1"]),
        (GOOD.replace("0.5", "-0.5"), ["row 5", "value = '-0.5'"]),
        (GOOD.replace("1000", "-1"), ["row 2 (mine / isl)", "value = '-1'"]),
        (GOOD.replace("1000", "0"), ["row 2", "isl 0: must be at least 1"]),
        (GOOD.replace("1000", "NaN"), ["row 2", "value = 'NaN'", "finite"]),
        (GOOD.replace("1000", "inf"), ["row 2", "finite"]),
        (GOOD.replace("isl", "ils"), ["row 2 (mine / ils)", "Did you mean 'isl'"]),
        (GOOD.replace("requests", "tokens"), ["row 4", "does not fit concurrency", "'requests'"]),
        (GOOD + rows(ttft=5).replace(",s,", ",ms,"), ["row 6", "unit 'ms' does not fit ttft"]),
        (GOOD + rows(tpot=0), ["row 6", "tpot 0", "leave the row out"]),
        (GOOD.replace("1000,,", "1000,2000,"), ["row 2", "is not between low 2000"]),
        (GOOD + GOOD, ["row 6", "the same workload and quantity as row 2"]),
        ("", ["no rows"]),
    ],
)
def test_a_bad_workload_is_named(text: str, words: list[str], tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(HEADER + text, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        wl.workloads_with(path)
    message = str(caught.value)
    assert "mine.csv" in message
    for word in words:
        assert word in message, (word, message)


@pytest.mark.parametrize(
    ("table", "old", "new", "word"),
    [
        ("workload_labels.csv", "rag,", "rga,", "Did you mean 'rag'"),
        ("workload_labels.csv", "rag,retrieval\n", "", "'rag' has no label"),
        ("workloads.csv", "tracelab k3lib_assumed", "tracelib k3lib_assumed", "Did you mean 'tracelab'"),
    ],
)
def test_the_projects_own_workloads_are_whole(table: str, old: str, new: str, word: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=word) as caught:
        wl.workloads(changed_data(tmp_path, table, old, new))
    assert table in str(caught.value)


@given(
    st.fixed_dictionaries(
        {name: st.floats(1, allow_nan=False, allow_infinity=False) for name in wl.NEEDED},
        optional={
            "thinking": st.floats(0, allow_infinity=False),
            "hit": st.floats(0, 1),
            "ttft": st.floats(1e-300, allow_infinity=False),
            "tpot": st.floats(1e-300, allow_infinity=False),
        },
    )
)
def test_any_sound_workload_survives_the_file(values: dict[str, float]) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "mine.csv"
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(HEADER.strip().split(","))
            for name, value in values.items():
                writer.writerow(["mine", name, value, "", "", wl.QUANTITY_UNITS[name], "assumed", "2026", "me", ""])
        mine = wl.workload("mine", wl.workloads_with(path))
    assert {name: row.value for name, row in mine.facts.items()} == values
    assert mine.osl == round(values["osl"]) + round(values.get("thinking", 0))
    assert 0 <= mine.cached <= mine.isl and mine.uncached == mine.isl - mine.cached
    assert (mine.ttft_s, mine.tpot_ms) == (values.get("ttft"), values.get("tpot"))

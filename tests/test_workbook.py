"""The workbook of costs: recalculated by a spreadsheet it gives what the library gives, and nothing in it can harm."""

from __future__ import annotations

import json
import math
import re
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import openpyxl
import pandas as pd
import pytest
import spreadsheet
from conftest import once
from openpyxl.formula import Tokenizer

from k3lib.choose.bills import MAKERS
from k3lib.choose.costed import costs
from k3lib.choose.scene import Scene
from k3lib.choose.study import Entry, Seen
from k3lib.cost import api
from k3lib.cost.own import NOT_COUNTED, Ownership
from k3lib.cost.unit import TOKENS, break_even, break_even_hours, pays_back_months, unit_cost
from k3lib.errors import InputError
from k3lib.facts.cluster_prices import LINES
from k3lib.facts.clusters import NamedCluster, cluster
from k3lib.facts.planned import planned
from k3lib.facts.price_parameters import price_parameters, with_parameters
from k3lib.facts.prices import prices
from k3lib.facts.workloads import workloads
from k3lib.ranges import Range
from k3lib.report import workbook
from k3lib.report.cells import plain
from k3lib.report.cost_words import PLACES
from k3lib.report.workbook_bills import PARTS_OF_MONTH
from k3lib.report.workbook_data import content

CASES = ("low", "default", "high")
TIGHT = 1e-9
WORDS = "the base scenario"
HOSTILE = ("=cmd|'/c calc'!A0", "+1+1", "-2+3", "@SUM(A1)", "\t=1+1", "\r\n=HYPERLINK(\"http://x\")", "{=1+1}", "  =2",
           "\u200b=3", "\uff1d1+1", "|calc", "=\x00\x1b[31m")  # fmt: skip


class Fixed(Scene):
    """A scene whose speeds are made up, so that nothing is predicted."""

    def entry(self, row: NamedCluster, workload_id: str) -> Entry:
        at = 1 + [c.cluster_id for c in self.clusters].index(row.cluster_id)
        part = 1 + list(self.workloads).index(workload_id)
        one, none = (row.cluster_id, workload_id) == (self.plan.cluster_id, "million-token"), row.kind == "hypothetical"
        own_load, most = (seen(speed * at / part) for speed in (311.7, 523.1))
        return Entry(
            cluster_id=row.cluster_id, workload_id=workload_id, cards=row.cards, clients=32, layout="tp8,pp4",
            reason="too small" if none else "", seen=None if none else own_load, copies=1, kv_tokens=1, sessions=1,
            max_context=1, within=not one, surely=False, most_clients=0 if one else 64,
            most_layout="" if one else "tp16,pp2", most=None if one or none else most, sources=("article_a",),
        )  # fmt: skip


def seen(tps: float) -> Seen:
    return Seen(
        Range(tps, tps / 1.3, tps * 1.6), Range(40, 30, 60), Range(900, 700, 1300), "experts", "nothing measured"
    )


def scene(plan: NamedCluster | None = None) -> Fixed:
    return Fixed(plan or cluster("h20x32"), cluster("a3x64"), workloads(), None, "vllm", "mxfp4")  # type: ignore[arg-type]


HERE, TABLE = scene(), prices()
BUSY = 0.4
COSTS = costs(HERE, TABLE, BUSY)
OPTIONS = {f"own:{name}" for name in COSTS.owned}
OPTIONS |= {f"rent:{name}:{rent}" for name, let in COSTS.rented.items() for rent in let}


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("workbook") / "k3-costs.xlsx"
    workbook.write(path, COSTS, WORDS)
    return path


CHANGED = {
    "own_load": {"speed_load": "its own clients"},
    "price": {"h20_server_price_cny": 1.5e6, "cny_per_usd": 6.9, "capital_cost_per_year": 0.0},
    "yours": {"case": "high", "yours:h20_server_price_cny": 1.5e6, "yours:utilisation": 0.6},
}


@pytest.fixture(scope="module")
def calculated(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The workbook in each case and with changes, calculated anew from its formulas alone."""
    folder = once(tmp_path_factory, "calculated", calculate)
    return {path.stem: path for path in (folder / "recalculated").glob("*.xlsx")}


def calculate(folder: Path) -> None:
    written = folder / "k3-costs.xlsx"
    workbook.write(written, COSTS, WORDS)
    files = [spreadsheet.changed(written, folder / f"{case}.xlsx", {"case": case}) for case in CASES]
    for name, cells in CHANGED.items():
        at = {yours(written, k.removeprefix("yours:")) if k.startswith("yours:") else k: v for k, v in cells.items()}
        files.append(spreadsheet.changed(written, folder / f"{name}.xlsx", at))
    harmful = folder / "hostile.xlsx"
    hostile(harmful)
    spreadsheet.recalculated([*files, spreadsheet.changed(harmful, harmful, {})], folder)


def yours(path: Path, name: str) -> str:
    """The cell in which a reader writes a value of their own, left of a default by its name."""
    ((_, address),) = spreadsheet.opened(path, shown=False).defined_names[name].destinations
    return f"Inputs!C{address.split('$')[-1]}"


def hostile(path: Path) -> None:
    """A workbook all of whose words begin as formulas do."""
    words: Iterator[str] = iter(HOSTILE * 1000)
    table = {key: row.model_copy(update={"note": next(words)}) for key, row in TABLE.items()}
    loads = {key: replace(one, label=next(words)) for key, one in workloads().items()}
    rows = [one.model_copy(update={"short": next(words), "label": next(words)}) for one in HERE.clusters]
    here = Fixed(rows[0], next(r for r in rows if r.cluster_id == "a3x64"), loads, None, "vllm", "mxfp4")  # type: ignore[arg-type]
    here.__dict__["clusters"] = tuple(rows)
    workbook.write(path, costs(here, table, BUSY), HOSTILE[0])


def at(found: Range, case: str, *, falling: bool = False) -> float:
    """The end of a range in a case of the workbook: low is where owning is cheap."""
    return float(found.corners(falling=falling)[CASES.index(case)])


def held_of(option: str) -> Ownership:
    kind, name, *rest = option.split(":")
    return COSTS.owned[name] if kind == "own" else COSTS.rented[name][rest[0]]


def speed_of(option: str, workload: str) -> Range:
    full = COSTS.full(option.split(":")[1], workload)
    assert full
    return full.seen.output_tps


def offer_of(service: str) -> api.Offer:
    return COSTS.offers[service.split(":")[1]]


def same(found: Any, wanted: float | None) -> bool:
    if wanted is None:
        return found in (None, "")
    return isinstance(found, int | float) and math.isclose(found, wanted, rel_tol=TIGHT, abs_tol=1e-12)


@pytest.mark.parametrize("case", CASES)
def test_costs_of_tokens_are_the_librarys(calculated: dict[str, Path], case: str) -> None:
    rows = spreadsheet.table(calculated[case], "Results")
    found = {(row["Option"], row["Workload"]) for row in rows if row["Kind"] != "api"}
    served = {(name, load) for name in OPTIONS for load in workloads() if COSTS.full(name.split(":")[1], load)}
    assert found == served and len(rows) - len(found) == len(COSTS.offers) * len(workloads()) + len(MAKERS)
    for row in rows:
        mix = api.mix_of(workloads()[row["Workload"]])
        wanted = service_costs(row["Option"], mix) if row["Kind"] == "api" else cluster_costs(row["Option"], mix)
        for column, (found, falling) in wanted.items():
            value = None if found is None else at(found, case, falling=falling)
            assert same(row[column], value), (row["Option"], row["Workload"], column, row[column], value)


def cluster_costs(option: str, mix: api.Mix) -> dict[str, tuple[Range | None, bool]]:
    held = held_of(option)
    unit = unit_cost(held, speed_of(option, mix.name), mix)
    return {
        "Output under full load, tok/s": (unit.output_tps, True), "Output of a month, Mtok": (unit.mtok_month, True),
        "Investment, CNY": (held.capex_cny, False), "Month, CNY": (held.monthly_cny, False),
        "CNY per Mtok of output": (unit.per_mtok_output, False), "CNY per Mtok in and out": (unit.per_mtok_all, False),
        "CNY per user and month": (unit.per_user, False), "Users": (unit.users, True),
        "kWh per Mtok of output": (unit.kwh_per_mtok, False),
    }  # fmt: skip


def service_costs(option: str, mix: api.Mix) -> dict[str, tuple[Range | None, bool]]:
    share = api.batch_share(TABLE) if option.endswith(":batch") else None
    asked = api.api_cost_cny(mix, offer_of(option), share)
    every = mix.answer / (mix.new + mix.cached + mix.answer)
    users = mix.requests.corners() * mix.answer / 1e6 if mix.requests else None
    a_user = None if users is None else Range(*(asked.corners() * users)[[1, 0, 2]])
    return {
        "CNY per Mtok of output": (asked, False),
        "CNY per Mtok in and out": (Range(*(asked.corners() * every)[[1, 0, 2]]), False),
        "CNY per user and month": (a_user, False),
    }


@pytest.mark.parametrize("case", CASES)
def test_bills_are_the_librarys(calculated: dict[str, Path], case: str) -> None:
    labels = {label: name for name, label in LINES.items()}
    rows = spreadsheet.table(calculated[case], "Bills")
    seen_lines: dict[str, set[str]] = {}
    for row in rows:
        name = labels[row["Line"]]
        if name == "power":
            continue
        line = held_of(row["Option"]).line(name)
        seen_lines.setdefault(row["Option"], set()).add(name)
        column = "At once, CNY" if line.kind == "capex" else "Running, CNY/month"
        assert same(row[column], at(line.cny, case)), (row, line.cny)
        assert same(row["A month with wear and interest, CNY"], at(line.monthly_cny, case)), (row, line.monthly_cny)
    for option, names in seen_lines.items():
        assert names == {line.name for line in held_of(option).lines}


@pytest.mark.parametrize("case", CASES)
def test_options_add_up_to_the_librarys(calculated: dict[str, Path], case: str) -> None:
    rows = spreadsheet.table(calculated[case], "Options")
    assert {row["Option"] for row in rows} == OPTIONS
    for row in rows:
        held = held_of(row["Option"])
        for column, found in (("Investment, CNY", held.capex_cny), ("Month, CNY", held.monthly_cny),
                              ("of it capital, CNY/month", held.capital_cny), ("Energy, kWh/month", held.kwh_month),
                              ("of it running, CNY/month", held.running_cny)):  # fmt: skip
            assert same(row[column], None if found is None else at(found, case)), (row["Option"], column)
        assert same(row["Working time, share"], at(held.availability, case, falling=True))
        parts = sum(row[f"{name}, CNY/month"] for name in PARTS_OF_MONTH)
        assert math.isclose(parts, row["Month, CNY"], rel_tol=TIGHT)
        assert row["Priced for"] == PLACES[held.bill.region]


def test_every_line_of_a_bill_is_in_one_part_of_the_month() -> None:
    assert sorted(name for names in PARTS_OF_MONTH.values() for name in names) == sorted(set(LINES) - {"power"})


@pytest.mark.parametrize("case", CASES)
def test_break_evens_are_the_librarys(calculated: dict[str, Path], case: str) -> None:
    rows = spreadsheet.table(calculated[case], "Break-even")
    assert {row["Service"].removeprefix("api:") for row in rows} == set(MAKERS)
    for row in rows:
        mix, held = api.mix_of(workloads()[row["Workload"]]), held_of(row["Option"])
        asked = api.api_cost_cny(mix, offer_of(row["Service"]))
        even = break_even(held, speed_of(row["Option"], mix.name), mix, asked)
        assert same(row["Break-even utilisation, share"], at(even.utilisation, case)), row
        assert same(row["Break-even output, Mtok/month"], at(even.mtok_month, case)), row
        cheaper = "own" if at(held.utilisation, case, falling=True) > at(even.utilisation, case) else "service"
        assert row["Cheaper at that"] == cheaper


@pytest.mark.parametrize("case", CASES)
def test_renting_against_buying_is_the_librarys(calculated: dict[str, Path], case: str) -> None:
    rows = spreadsheet.table(calculated[case], "Rent or buy")
    assert {row["Rent"] for row in rows} == OPTIONS - {name for name in OPTIONS if name.startswith("own:")}
    for row in rows:
        bought, let = held_of(row["Option"]), held_of(row["Rent"])
        hours, months = at(break_even_hours(bought, let), case), at(pays_back_months(bought, let), case)
        assert same(row["Break-even hours, share of all"], hours), row
        assert row["Paid back after, months"] == "never" if math.isinf(months) else same(
            row["Paid back after, months"], months), (row, months)  # fmt: skip


def test_what_is_stored_is_what_a_spreadsheet_calculates(written: Path, calculated: dict[str, Path]) -> None:
    stored, anew = spreadsheet.values(written), spreadsheet.values(calculated["default"])
    found = spreadsheet.formulas(written)
    assert len(found) > 4000
    for (sheet, address), text in found.items():
        one, other = stored[sheet][address], anew[sheet][address]
        good = same(other, one) if isinstance(one, int | float) else one == other
        assert good, (sheet, address, text, one, other)


def test_no_formula_fails_anywhere(calculated: dict[str, Path], written: Path) -> None:
    addresses = spreadsheet.formulas(written)
    for name, path in calculated.items():
        shown = spreadsheet.values(path)
        for sheet, address in addresses:
            value = shown[sheet].get(address)
            assert value is not None and not str(value).startswith(("#", "Err:")), (name, sheet, address, value)


def test_every_formula_parses_and_refers_to_what_is_there(written: Path) -> None:
    book = spreadsheet.opened(written, shown=False)
    names = set(book.defined_names)
    for (sheet, address), text in spreadsheet.formulas(written).items():
        assert len(text) < 1000, (sheet, address)
        for token in Tokenizer(text).items:
            if token.type == "OPERAND" and token.subtype == "RANGE":
                where, _, cell = token.value.rpartition("!")
                if cell not in names:
                    assert re.fullmatch(r"[A-Z]{1,2}\d+", cell), (sheet, address, token.value)
                    value = book[where.strip("'") or sheet][cell].value
                    assert isinstance(value, int | float) or str(value).startswith("=") or cell[0] == "C" or (
                        sheet == "Speeds" and cell[0] == "E"), (sheet, address, token.value)  # fmt: skip


def test_defaults_have_names(written: Path) -> None:
    book = spreadsheet.opened(written, shown=True)
    for row in price_parameters().values():
        ((sheet, address),) = book.defined_names[row.parameter].destinations
        cell = book[sheet][address.replace("$", "")]
        item = TABLE[row.item_id]
        assert sheet == "Inputs" and cell.column_letter == "E"
        factor = 100 if item.unit.startswith("%") else 1
        assert cell.value == pytest.approx(item.default / factor, rel=1e-12), row.parameter
        assert book["Inputs"][f"A{cell.row}"].value == row.parameter
    for name in ("case", "speed_load", "used_h20_server_price_cny", "utilisation", "online_chat_answer"):
        assert name in book.defined_names


def test_a_changed_price_changes_what_rests_on_it(calculated: dict[str, Path]) -> None:
    table = with_parameters({"h20_server_price_cny": 1.5e6, "cny_per_usd": 6.9, "capital_cost_per_year": 0.0})
    rows = {row["Option"]: row for row in spreadsheet.table(calculated["price"], "Options")}
    for name, held in costs(HERE, table, BUSY).owned.items():
        assert same(rows[f"own:{name}"]["Investment, CNY"], held.capex_cny.value)
        assert math.isclose(rows[f"own:{name}"]["Month, CNY"], held.monthly_cny.value, rel_tol=1e-8)
    before = {row["Option"]: row for row in spreadsheet.table(calculated["default"], "Options")}
    assert rows["own:h20x32"]["Month, CNY"] != before["own:h20x32"]["Month, CNY"]


def test_a_readers_own_value_stands_in_every_case(calculated: dict[str, Path]) -> None:
    held = costs(HERE, with_parameters({"h20_server_price_cny": 1.5e6}), 0.6).owned["h20x32"]
    rows = {(r["Option"], r["Workload"]): r for r in spreadsheet.table(calculated["yours"], "Results")}
    mix = api.mix_of(workloads()["rag"])
    row = rows["own:h20x32", "rag"]
    assert same(row["Month, CNY"], held.monthly_cny.high)
    assert same(row["CNY per Mtok of output"], unit_cost(held, speed_of("own:h20x32", "rag"), mix).per_mtok_output.high)


def test_speeds_may_be_those_of_the_workloads_own_clients(calculated: dict[str, Path]) -> None:
    for row in spreadsheet.table(calculated["own_load"], "Results"):
        if row["Kind"] != "api":
            entry = HERE.entry(cluster(row["Option"].split(":")[1]), row["Workload"])
            assert entry.seen and same(row["Output under full load, tok/s"], entry.seen.output_tps.value)
            assert row["Goals met"] == ("yes" if entry.within else "no")


def test_nothing_in_the_file_can_run_or_call_out(written: Path, tmp_path: Path) -> None:
    harmful = tmp_path / "hostile.xlsx"
    hostile(harmful)
    for path in (written, harmful):
        with zipfile.ZipFile(path) as file:
            parts = {name: file.read(name).decode("utf-8") for name in file.namelist()}
        for name, text in parts.items():
            assert not re.search(r"vba|macro|externalLink|embed|oleObject|activeX|connections|customXml", name), name
            assert 'TargetMode="External"' not in text, name
            assert not re.search(r"<(ddeLink|oleLink|webPr|connection)\b", text), name
        assert "macroEnabled" not in parts["[Content_Types].xml"]
        assert not re.search(r"<f>[^<]*(cmd|HYPERLINK|WEBSERVICE|DDE|\[\d+\])", "".join(parts.values()))


def test_hostile_words_stay_words(written: Path, calculated: dict[str, Path], tmp_path: Path) -> None:
    harmful = tmp_path / "hostile.xlsx"
    hostile(harmful)
    assert set(spreadsheet.formulas(harmful)) == set(spreadsheet.formulas(written))
    found = 0
    for path in (harmful, calculated["hostile"]):
        for cells in openpyxl.load_workbook(path):
            for cell in (c for row in cells.iter_rows() for c in row if isinstance(c.value, str)):
                if cell.data_type != "f":
                    assert cell.value == plain(cell.value), (path, cell)
                    assert not cell.value.startswith(tuple("=+-@{|\t\r\n\uff1d")), (path, cell)
                    found += "cmd|" in cell.value
    assert found > 20


@pytest.mark.parametrize("text", HOSTILE)
def test_what_would_start_a_formula_has_an_apostrophe(text: str) -> None:
    shown = plain(text)
    assert shown[0] == "'" and shown.isprintable() and plain(shown) == shown


@pytest.mark.parametrize("text", ["", "a - b", "64 cards", "'quoted", "0.5", "\u20134 %"])
def test_other_words_are_left_as_they_are(text: str) -> None:
    assert plain(text) == text


def test_equal_inputs_are_equal_bytes(written: Path, tmp_path: Path) -> None:
    again = tmp_path / "again.xlsx"
    workbook.write(again, costs(scene(), dict(prices()), BUSY), WORDS)
    assert again.read_bytes() == written.read_bytes()
    with zipfile.ZipFile(again) as file:
        assert {entry.date_time for entry in file.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        assert "2026-11-" in file.read("docProps/core.xml").decode("utf-8")
    workbook.write(again, costs(HERE, with_parameters({"cny_per_usd": 6.9}), BUSY), WORDS)
    assert again.read_bytes() != written.read_bytes()


def test_the_first_sheet_says_what_it_is(written: Path) -> None:
    shown = list(spreadsheet.values(written)["Read me"].values())
    for text in (WORDS, TOKENS, *NOT_COUNTED, "default", "own 32 H20 96 GB"):
        assert text in shown, text
    books = pd.read_excel(written, sheet_name=None)
    assert list(books)[:2] == ["Read me", "Inputs"] and set(workbook.SHEETS) == set(books) - {"Read me"}


def test_other_programs_read_it(written: Path) -> None:
    results = pd.read_excel(written, sheet_name="Results")
    assert results["CNY per Mtok of output"].notna().all()
    inputs = pd.read_excel(written, sheet_name="Inputs").dropna(subset=["Default"])
    assert (inputs["Low"] <= inputs["Default"]).all() and (inputs["Default"] <= inputs["High"]).all()
    assert inputs["Sources"].notna().all() and inputs["Grade"].notna().all() and inputs["Unit"].notna().all()
    charts = openpyxl.load_workbook(written)["Charts"]._charts
    assert len(charts) == 2


def test_heads_have_units(written: Path) -> None:
    for sheet in ("Results", "Options", "Bills", "Break-even", "Rent or buy"):
        frame = pd.read_excel(written, sheet_name=sheet)
        for column in frame.select_dtypes("number"):
            assert re.search(r"CNY|kWh|kW|tok|share|months|Users|Cards|How many", column), (sheet, column)


def test_a_plan_of_other_cards_is_in_it(tmp_path: Path) -> None:
    row = planned("8x8xh20-96", 8)
    known = costs(scene(row), TABLE, BUSY)
    path = tmp_path / "k3-costs.xlsx"
    workbook.write(path, known, WORDS)
    rows = {r["Option"]: r for r in spreadsheet.table(path, "Options")}
    assert same(rows[f"own:{row.cluster_id}"]["Month, CNY"], known.owned[row.cluster_id].monthly_cny.value)
    let = known.rented[row.cluster_id]["bare_metal"]
    assert same(rows[f"rent:{row.cluster_id}:bare_metal"]["Month, CNY"], let.monthly_cny.value)
    whats = {r["Name of the default cell"]: r["What"] for r in spreadsheet.table(path, "Inputs")}
    assert whats["count_h20_96_8x8_8nic_servers"].startswith(row.short)


def test_a_plan_of_cards_without_a_price_is_left_out(tmp_path: Path) -> None:
    row = planned("1x8xb300", 8)
    path = tmp_path / "k3-costs.xlsx"
    workbook.write(path, costs(scene(row), TABLE, BUSY), WORDS)
    options = {r["Option"] for r in spreadsheet.table(path, "Options")}
    assert f"own:{row.cluster_id}" not in options and "own:a3x64" in options
    assert row.cluster_id in {r["Name"].split(" / ")[0] for r in spreadsheet.table(path, "Speeds")}


def test_what_a_scenario_states_is_known(tmp_path: Path) -> None:
    path = tmp_path / "k3-costs.xlsx"
    known = costs(HERE, TABLE, 0.7, "other")
    workbook.write(path, known, WORDS)
    row = next(r for r in spreadsheet.table(path, "Inputs") if r["Name of the default cell"] == "utilisation")
    assert (row["Low"], row["Default"], row["High"]) == (0.7, 0.7, 0.7)
    assert row["Note"] == "set by the scenario, in place of 0.1 to 0.8"
    for one in spreadsheet.table(path, "Options"):
        assert one["Option"].startswith("rent") or same(
            one["Month, CNY"], known.owned[one["Option"].split(":")[1]].monthly_cny.value)  # fmt: skip


def test_nothing_priced_is_said() -> None:
    held = content(COSTS, WORDS)
    with pytest.raises(InputError, match="nobody published a price"):
        workbook.made(replace(held, held=()))


def test_two_inputs_of_one_name_are_refused() -> None:
    held = content(COSTS, WORDS)
    with pytest.raises(InputError, match="two cells of the name"):
        workbook.made(replace(held, prices=(*held.prices, held.prices[0])))


# Columns of the sheets, and the keys of the same numbers in the book.
IN_THE_BOOK = {
    "Results": {
        "Investment, CNY": "{way}.capex_cny",
        "Month, CNY": "{way}.monthly_cny",
        "Output of a month, Mtok": "{way}.mtok_month.{load}",
        "CNY per Mtok of output": "{way}.cny_per_mtok_output.{load}",
        "CNY per Mtok in and out": "{way}.cny_per_mtok_all.{load}",
        "CNY per user and month": "{way}.cny_per_user_month.{load}",
        "Users": "{way}.users.{load}",
        "kWh per Mtok of output": "{way}.kwh_per_mtok.{load}",
    },
    "Break-even": {
        "Break-even utilisation, share": "cost.breakeven.{cluster}.{service}.utilisation.{load}",
        "Break-even output, Mtok/month": "cost.breakeven.{cluster}.{service}.mtok_month.{load}",
    },
    "Rent or buy": {"Break-even hours, share of all": "cost.breakeven.{cluster}.{rent}.utilisation"},
}
FALLING = ("Output of a month, Mtok", "Users")


def parts_of_keys(row: dict[str, Any]) -> dict[str, str]:
    """What a row of a sheet is called in the keys of results."""
    kind, name, *rest = row["Option"].split(":")
    model, _, host = name.partition("@")
    way = {"own": f"cost.{name}", "api": f"cost.api.{host}.{'-'.join([model, *rest])}"}
    return {
        "way": way.get(kind) or f"cost.{name}.rent-{rest[0]}",
        "cluster": name,
        "load": str(row.get("Workload")),
        "service": str(row.get("Service")).removeprefix("api:").replace("@", "-"),
        "rent": f"rent-{str(row.get('Rent')).rpartition(':')[2]}",
    }


def test_the_book_and_its_workbook_agree_in_every_case(book: Path, tmp_path: Path) -> None:
    path = book / "downloads" / "k3-costs.xlsx"
    results = json.loads((book / "results.json").read_text(encoding="utf-8"))
    files = [spreadsheet.changed(path, tmp_path / f"{case}.xlsx", {"case": case}) for case in CASES]
    compared: dict[str, int] = {}
    for case, file in spreadsheet.recalculated(files, tmp_path).items():
        for sheet, columns in IN_THE_BOOK.items():
            for row in spreadsheet.table(file, sheet):
                for column, pattern in columns.items():
                    key = pattern.format(**parts_of_keys(row))
                    if key in results:
                        ends = Range(*(results[key][end] for end in ("value", "low", "high")))
                        wanted = at(ends, case, falling=column in FALLING)
                        assert same(row[column], wanted), (case, key, row[column], wanted)
                        compared[column] = compared.get(column, 0) + 1
    assert set(compared) == {column for columns in IN_THE_BOOK.values() for column in columns}
    assert compared["CNY per Mtok of output"] > 3 * 100


def test_a_scenario_that_serves_nothing_still_has_its_bills(tmp_path: Path) -> None:
    path = tmp_path / "k3-costs.xlsx"
    path.write_bytes(workbook.made(replace(content(COSTS, WORDS), entries={})))
    assert {row["Option"] for row in spreadsheet.table(path, "Options")} == OPTIONS
    assert {row["Kind"] for row in spreadsheet.table(path, "Results")} == {"api"}
    assert not spreadsheet.table(path, "Break-even")

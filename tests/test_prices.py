"""Prices: the published figures, a reader's own file, and the one clear line for what cannot be used."""

from __future__ import annotations

import csv
import io
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from k3lib import units
from k3lib.errors import InputError
from k3lib.facts.paths import DATA
from k3lib.facts.prices import ASSUMED, FAR, OWN, Price, in_cny, price, prices, prices_with

HEADER = "item_id,low,default,high,unit,currency,region,as_of,kind,grade,source_id,note"
SERVER = "server8.h20-96,900000,1150000,1300000,CNY/server,CNY,cn,2026-11,street,measured,own_price,three quotes"
POWER = "electricity.coast,0.5,0.62,0.7,CNY/kWh,CNY,cn,2026-11,list,measured,own_price,"
ABROAD = "rent.h200.abroad,3.1,3.3,3.5,USD/card-hour,USD,other,2026-11,list,measured,own_price,"
LIFE = "life.server,3,5,6,years,,cn,2026-11,assumption,assumed,own_price,"
RISK = "capital.cost,4,6,8,%/year,,cn,2026-11,assumption,assumed,own_price,"
HALL = "pue,1.2,1.3,1.4,1,,cn,2026-11,measured,measured,own_price,"


def own_file(folder: Path, *rows: str, header: str = HEADER) -> Path:
    path = folder / "mine.csv"
    path.write_text("\n".join((header, *rows)) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("item", "low", "default", "high", "unit"),
    [
        ("server8.h20-96", 950_000, 1_200_000, 2_000_000, "CNY/server"),
        ("server8.h200", 1_400_000, 1_500_000, 2_000_000, "CNY/server"),
        ("module8.h20-96", 880_000, 1_050_000, 1_050_000, "CNY/module of 8"),
        ("superpod384.a3-910c", 53_760_000, 60_000_000, 76_800_000, "CNY/superpod of 384"),
        ("superpod64.a3-910c", 9_000_000, 10_000_000, 12_800_000, "CNY/superpod of 64"),
        ("rack72.gb200", 2_700_000, 3_100_000, 4_000_000, "USD/rack of 72"),
        ("switch.ib-64x400", 36_000, 50_000, 60_000, "USD/switch"),
        ("optics.ib", 635, 1_320, 1_465, "USD/card"),
        ("electricity.coast", 0.6, 0.7, 0.85, "CNY/kWh"),
        ("pue", 1.12, 1.25, 1.5, "1"),
        ("life.server", 3, 4, 5, "years"),
        ("fx.cny_per_usd", 6.6, 6.7, 6.8, "CNY/USD"),
        ("rent.h100.azure", 12.29, 12.29, 12.29, "USD/card-hour"),
        ("api.k3.moonshot-cn.input", 20, 20, 20, "CNY/Mtok"),
        ("api.k3.moonshot-cn.cached", 2, 2, 2, "CNY/Mtok"),
        ("api.k3.moonshot-cn.output", 100, 100, 100, "CNY/Mtok"),
        ("api.k31-pro.moonshot-cn.input", 13, 13, 13, "CNY/Mtok"),
        ("api.k31-pro.moonshot-cn.cached", 1.3, 1.3, 1.3, "CNY/Mtok"),
        ("api.k31-pro.moonshot-cn.output", 68, 68, 68, "CNY/Mtok"),
        ("api.k3.openrouter.cached", 0.216, 0.216, 0.216, "USD/Mtok"),
        ("claim.server8.h20-96", 2_000_000, 2_750_000, 3_500_000, "CNY/server"),
    ],
)
def test_published_figures(item: str, low: float, default: float, high: float, unit: str) -> None:
    row = price(item)
    assert (row.low, row.default, row.high, row.unit) == (low, default, high, unit)


@pytest.mark.parametrize(
    ("item", "name", "paid", "hours", "cards"),
    [
        ("rent.h20-96.bare_metal", "low", 30_000, 730, 8),
        ("rent.h20-96.bare_metal", "default", 35_000, 730, 8),
        ("rent.h20-96.bare_metal", "high", 38_000, 730, 8),
        ("rent.h20-96.cloud_month", "low", 133_000, 730, 8),
        ("rent.h20-96.cloud_month", "default", 174_579, 730, 8),
        ("rent.h20-96.cloud_hour", "low", 212.63, 1, 8),
        ("rent.h20-141.bare_metal", "default", 40_000, 730, 8),
        ("rent.h20-141.bare_metal", "high", 60_000, 730, 8),
        ("rent.h100.bare_metal", "default", 68_000, 730, 8),
        ("rent.h100.bare_metal", "high", 75_000, 730, 8),
        ("rent.h100.reserved", "low", 80_000, 730, 8),
        ("rent.h100.reserved", "high", 90_000, 730, 8),
        ("rent.h200.bare_metal", "default", 80_000, 730, 8),
        ("rent.h200.bare_metal", "high", 350_000, 8_760, 1),
        ("rent.a3-910c.reserved", "low", 8_500, 730, 1),
        ("rent.a3-910c.reserved", "default", 10_000, 730, 1),
        ("rent.a3-910c.reserved", "high", 11_200, 730, 1),
        ("rent.b300.reserved.abroad", "default", 389_400, 8_760, 8),
        ("rent.gb200.aws", "default", 761.904, 1, 72),
    ],
)
def test_a_rent_by_the_card_and_hour_is_the_published_bill(
    item: str, name: str, paid: float, hours: float, cards: int
) -> None:
    assert getattr(price(item), name) == pytest.approx(paid / hours / cards, abs=0.0051)


def test_the_table_is_honest_about_itself() -> None:
    for row in prices().values():
        assert row.note, row.item_id
        assert OWN not in row.source_ids
        if ASSUMED in row.source_ids or row.kind in ("claim", "assumption"):
            assert row.grade == "assumed", row.item_id
        if row.kind == "assumption":
            assert ASSUMED in row.source_ids and row.low < row.high, row.item_id
        if any(source.startswith("margins_") for source in row.source_ids) and row.grade != "assumed":
            assert len(row.source_ids) > 1, f"{row.item_id} rests on a second-hand file alone"
        if row.low:  # or a thousand times too small would not be far
            assert row.default / row.low < FAR / 10 and row.high / row.default < FAR / 10, row.item_id


def test_a_near_name() -> None:
    with pytest.raises(InputError, match=r"item 'server8.h20-69' is not in data/prices.csv. Did you mean 'server8.h20"):
        price("server8.h20-69")


def test_money_in_yuan() -> None:
    assert in_cny(price("server8.h20-96"), 6.7) == (950_000, 1_200_000, 2_000_000)
    assert in_cny(price("rack72.gb200"), 7) == (18_900_000, 21_700_000, 28_000_000)
    with pytest.raises(InputError, match=r"pue' is in 1, which is not money"):
        in_cny(price("pue"), 6.7)
    with pytest.raises(InputError, match="is in CNY/USD, which is not money"):
        in_cny(price("fx.cny_per_usd"), 6.7)
    for rate in (0, -1, float("nan"), float("inf")):
        with pytest.raises(InputError, match="above 0 and finite"):
            in_cny(price("rack72.gb200"), rate)


def test_units_of_money() -> None:
    assert units.convert(15, "USD/GB", "USD/TB") == 15_000
    assert units.convert(7_300, "CNY/card-month", "CNY/card-hour") == 10
    assert units.convert(7.8, "USD/W", "USD/kW") == pytest.approx(7_800)
    assert units.convert(3, "million CNY", "CNY") == 3_000_000
    assert units.convert(4, "years", "h") == 35_040
    assert units.quantity(1, "years") == "1\u00a0year"
    for source, target in (("USD", "CNY"), ("USD/server", "CNY/server"), ("CNY/server", "CNY/card"),
                           ("CNY/rack of 72", "CNY/superpod of 64"), ("CNY/kWh", "CNY/kW-month")):  # fmt: skip
        with pytest.raises(InputError, match="cannot be shown in"):
            units.convert(1, source, target)
    assert [units.currency_of(n) for n in ("CNY", "million USD", "CNY/module of 8", "CNY/USD", "%")] == [
        "CNY", "USD", "CNY", "", ""]  # fmt: skip


def test_own_prices_stand_in_place_of_the_projects(tmp_path: Path) -> None:
    before = dict(prices())
    mine = prices_with(own_file(tmp_path, SERVER, POWER, LIFE))
    assert list(mine) == list(before)
    assert (mine["server8.h20-96"].default, mine["electricity.coast"].high, mine["life.server"].high) == (
        1_150_000,
        0.7,
        6,
    )
    assert {i for i in mine if mine[i] != before[i]} == {"server8.h20-96", "electricity.coast", "life.server"}
    assert prices() == before
    assert price("server8.h20-96", mine).source_ids == (OWN,)


def test_a_price_of_nothing_is_a_price(tmp_path: Path) -> None:
    mine = prices_with(own_file(tmp_path, SERVER.replace("900000,1150000,1300000", "0,0,0")))
    assert mine["server8.h20-96"].default == 0


@pytest.mark.parametrize(
    ("row", "old", "new", "words"),
    [
        (SERVER, "server8.h20-96", "server8.h20-69", ["server8.h20-69", "is not in data/prices.csv. Did you mean"]),
        (SERVER, "900000,1150000,1300000", "900,1150,1300", ["low 900 is far", "thousand yuan or yuan", "CNY/server"]),
        (SERVER, "900000,1150000,1300000", "900000,1150000,1300000000", ["high 1,300,000,000 is far", "thousand yuan"]),
        (SERVER, "900000,", "900,", ["low 900 is far from the project's 950,000 to 2,000,000"]),
        (ABROAD, "3.1,3.3,3.5", "3100,3300,3500", ["thousand dollars or dollars", "USD/card-hour"]),
        (RISK, "4,6,8", "0.04,0.06,0.08", ["low 0.04 is far", "another unit than %/year"]),
        (LIFE, "3,5,6", "1000,1500,1800", ["another unit than years"]),
        (SERVER, "CNY/server,CNY", "USD/server,USD", ["currency 'USD' is not 'CNY'", "in CNY/server"]),
        (SERVER, "CNY/server,CNY", "CNY/server,USD", ["unit 'CNY/server' does not go with currency 'USD'. Write CNY."]),
        (SERVER, "CNY/server,CNY", "CNY/server,", ["an empty currency. Write CNY."]),
        (LIFE, "years,", "years,CNY", ["Leave it empty"]),
        (SERVER, "CNY/server", "CNY/card", ["unit 'CNY/card' is not 'CNY/server'"]),
        (SERVER, "CNY/server", "CNY/servr", ["unit 'CNY/servr' is not known. Did you mean 'CNY/server'?"]),
        (SERVER, "server,CNY", "server,EUR", ["currency = 'EUR'"]),
        (SERVER, "900000,1150000", "900000,115000", ["low 900,000 is above default 115,000. Did a zero go missing?"]),
        (SERVER, "1150000", "11500000", ["default 11,500,000 is above high 1,300,000. Is there a zero too many?"]),
        (SERVER, "900000", "-900000", ["low = '-900000'"]),
        (SERVER, "1150000", "nan", ["default = 'nan'", "finite"]),
        (SERVER, "1300000", "inf", ["high = 'inf'", "finite"]),
        (SERVER, "1300000", "1e999", ["high = '1e999'", "finite"]),
        (SERVER, "1150000", "1.15m", ["default = '1.15m'"]),
        (SERVER, "1150000", "", ["default = ''"]),
        (SERVER, ",cn,", ",mars,", ["region = 'mars'"]),
        (SERVER, "street", "hearsay", ["kind = 'hearsay'"]),
        (SERVER, "measured", "sure", ["grade = 'sure'"]),
        (SERVER, "street", "claim", ["grade 'measured' is too good for a claim"]),
        (SERVER, "2026-11", "last week", ["as_of = 'last week'"]),
        (SERVER, "own_price", "my_quote", ["source 'my_quote' is not in data/sources.csv", "write 'own_price'"]),
        (SERVER, "own_price", "", ["source_id"]),
        (SERVER, ",three quotes", "", ["11 cells, the header has 12"]),
        (SERVER, "three quotes", "three, at least", ["13 cells, the header has 12"]),
        (HALL, "1.2,1.3", "0.2,1.3", ["low 0.2 is below 1"]),
        (RISK, "8,%", "800,%", ["high 800 is above 100 %/year"]),
        (LIFE, "3,5", "0,5", ["low is 0 years"]),
    ],
)
def test_a_bad_row_of_ones_own_is_named(row: str, old: str, new: str, words: list[str], tmp_path: Path) -> None:
    assert old in row
    prices_with(own_file(tmp_path, row))  # sound before the change
    before = dict(prices())
    with pytest.raises(InputError) as caught:
        prices_with(
            own_file(tmp_path, POWER.replace("electricity.coast", "electricity.west"), row.replace(old, new, 1))
        )
    for word in ("mine.csv, row 3", row.split(",")[0][:8], *words):
        assert word in str(caught.value), (word, str(caught.value))
    assert prices() == before


def test_a_file_that_is_no_table_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"mine.csv, row 3 .* the same item_id as row 2. Remove one"):
        prices_with(own_file(tmp_path, SERVER, SERVER))
    with pytest.raises(InputError, match=r"column 'defualt' is not known. Did you mean 'default'"):
        prices_with(own_file(tmp_path, SERVER, header=HEADER.replace("default", "defualt")))
    with pytest.raises(InputError, match="column 'unit' is missing"):
        prices_with(own_file(tmp_path, SERVER, header=HEADER.replace(",unit", "")))
    with pytest.raises(InputError, match="no rows"):
        prices_with(own_file(tmp_path))
    for content, word in ((b"", "is empty"), (b"\xff\xfe\x00", "not UTF-8"), (HEADER.encode() + b'\n"a', "quote")):
        (tmp_path / "mine.csv").write_bytes(content)
        with pytest.raises(InputError, match=word):
            prices_with(tmp_path / "mine.csv")
    with pytest.raises(InputError, match="no such file"):
        prices_with(tmp_path / "none.csv")


def test_a_row_of_the_project_without_a_known_source_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    shutil.copytree(DATA, folder)
    text = (folder / "prices.csv").read_text(encoding="utf-8")
    (folder / "prices.csv").write_text(text.replace("huxiu_h20", "huxiu_h02", 1), encoding="utf-8")
    with pytest.raises(InputError, match=r"source 'huxiu_h02' .* Did you mean 'huxiu_h20'"):
        prices(folder)


FIELDS = list(Price.model_fields)


@st.composite
def own_rows(draw: st.DrawFn) -> dict[str, str]:
    """A sound row of a reader's file: another range for one of the project's items."""
    ours = draw(st.sampled_from(list(prices().values())))
    stretch = st.floats(1, 3) if ours.unit == "1" else st.floats(0.4, 3)
    figures = sorted(v * draw(stretch) for v in (ours.low, ours.default, ours.high))
    if ours.unit.startswith("%"):
        figures = [min(v, 100.0) for v in figures]
    row = {name: str(value) for name, value in ours.model_dump().items()}
    note = draw(st.text(st.characters(blacklist_categories=("Cs", "Cc")), max_size=20))
    return row | dict(zip(("low", "default", "high"), map(repr, figures), strict=True)) | {
        "source_id": OWN, "grade": "assumed", "note": note}  # fmt: skip


def as_text(row: dict[str, str]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, FIELDS, lineterminator="\n")
    writer.writeheader()
    writer.writerow(row)
    return text.getvalue()


def read_back(content: bytes) -> dict[str, Price]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "mine.csv"
        path.write_bytes(content)
        return prices_with(path)


@settings(max_examples=60, deadline=None)
@given(own_rows())
def test_a_sound_file_comes_back_as_it_was_written(row: dict[str, str]) -> None:
    mine = read_back(as_text(row).encode())
    got = mine[row["item_id"]]
    assert [got.low, got.default, got.high] == [float(row[name]) for name in ("low", "default", "high")]
    assert got.note == row["note"].strip()
    assert {i for i in mine if mine[i] != prices()[i]} <= {row["item_id"]}


@settings(max_examples=150, deadline=None)
@given(own_rows(), st.data())
def test_a_spoilt_file_is_refused_in_one_line_or_still_sound(row: dict[str, str], data: st.DataObject) -> None:
    content = as_text(row).encode()
    start = data.draw(st.integers(0, len(content)))
    end = data.draw(st.integers(start, min(len(content), start + 12)))
    spoilt = content[:start] + data.draw(st.binary(max_size=12)) + content[end:]
    before = dict(prices())
    try:
        mine = read_back(spoilt)
    except InputError as error:
        assert "mine.csv" in str(error) and "\n" not in str(error)
    else:
        assert set(mine) == set(before)
    assert prices() == before


BAD = {
    "item_id": ["", "nothing", "a b", "server8"],
    "low": ["-1", "nan", "inf", "", "x", "1e300"],
    "default": ["-0.5", "NaN", "-inf", "", "1,000", "1e308"],
    "high": ["-2", "infinity", "", "zwei"],
    "unit": ["", "yuan", "CNY/thing", "GB"],
    "currency": ["EUR", "RMB", "cny"],
    "region": ["", "CN", "china"],
    "as_of": ["", "2026/11", "yesterday"],
    "kind": ["", "rumour"],
    "grade": ["", "certain"],
    "source_id": ["", "nobody", "own_price nobody"],
}


@settings(max_examples=80, deadline=None)
@given(own_rows(), st.sampled_from([(name, bad) for name, values in BAD.items() for bad in values]))
def test_a_bad_cell_is_always_an_input_error(row: dict[str, str], change: tuple[str, str]) -> None:
    with pytest.raises(InputError, match=r"mine\.csv, row 2"):
        read_back(as_text(row | {change[0]: change[1]}).encode())


@settings(max_examples=60, deadline=None)
@given(own_rows().filter(lambda row: row["currency"] and float(row["low"]) > 0), st.sampled_from([1_000, 1 / 1_000]))
def test_thousands_are_always_asked_about(row: dict[str, str], times: float) -> None:
    ours = prices()[row["item_id"]]
    figures = {name: repr(getattr(ours, name) * times) for name in ("low", "default", "high")}
    with pytest.raises(InputError, match=r"Was thousand (yuan|dollars) or (yuan|dollars) meant"):
        read_back(as_text(row | figures).encode())

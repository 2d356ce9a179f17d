"""Tables, scenarios, units and results: what is accepted, and the one clear line for what is not."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from k3lib import results as res
from k3lib import units
from k3lib.account import symbols as s
from k3lib.errors import InputError, near
from k3lib.facts import catalog, registry
from k3lib.facts.paths import DATA, SCENARIOS
from k3lib.facts.scenario import Scenario, load_scenario
from k3lib.facts.tables import read_text

HARDWARE = DATA / "hardware.csv"


def with_rows(tmp_path: Path, change: str, old: str, new: str, table: str = "hardware.csv") -> Path:
    """A copy of the data folder with one text changed in one table; `change` says what for, in a failed test."""
    folder = tmp_path / "data"
    shutil.copytree(DATA, folder)
    path = folder / table
    text = path.read_text(encoding="utf-8")
    assert old in text, change
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    return folder


LINE = "h20-96,memory_shown,97871,,,MiB,measured,2025,deepep_h20_log,as nvidia-smi prints it"


@pytest.mark.parametrize(
    ("change", "new", "words"),
    [
        ("a wrong unit", LINE.replace("MiB", "Mib"), ["row 3", "unit 'Mib' is not known", "Did you mean 'MiB'?"]),
        ("no source", LINE.replace("deepep_h20_log", ""), ["row 3", "h20-96 / memory_shown", "source_id"]),
        ("an unknown source", LINE.replace("deepep_h20_log", "deepep_log"), ["deepep_log", "Did you mean"]),
        ("a negative value", LINE.replace("97871", "-97871"), ["row 3", "value = '-97871'"]),
        ("not a number", LINE.replace("97871", "NaN"), ["row 3", "value = 'NaN'", "finite"]),
        ("infinity", LINE.replace("97871", "inf"), ["row 3", "finite"]),
        ("low above value", LINE.replace("97871,,", "97871,97999,98000"), ["row 3", "is not between low 97999"]),
        ("a word", LINE.replace("97871", "much"), ["row 3", "value = 'much'"]),
        ("an unknown grade", LINE.replace("measured", "guessed"), ["row 3", "grade = 'guessed'"]),
        ("a date that is none", LINE.replace("2025", "last year"), ["row 3", "as_of"]),
        ("a cell too many", LINE + ",more", ["row 3", "11 cells, the header has 10"]),
        ("a cell too few", LINE.rpartition(",")[0], ["row 3", "9 cells"]),
        ("a row twice", LINE + "\n" + LINE, ["row 4", "the same device and quantity as row 3"]),
        ("an open quote", LINE.replace("as nvidia", '"as nvidia'), ["not readable as CSV", "quote"]),
    ],
)
def test_a_bad_row_is_named(change: str, new: str, words: list[str], tmp_path: Path) -> None:
    data = with_rows(tmp_path, change, LINE, new)
    with pytest.raises(InputError) as caught:
        catalog.devices(data)
    message = str(caught.value)
    assert "hardware.csv" in message
    for word in words:
        assert word in message, (word, message)


@pytest.mark.parametrize(
    ("old", "new", "word"),
    [
        ("device,quantity", "device,quantty", "column 'quantty' is not known. Did you mean 'quantity'?"),
        ("device,quantity", "device,device", "stands twice"),
        (",grade,", ",", "column 'grade' is missing"),
        ("device,quantity,value,low,high,unit,grade,as_of,source_id,note\n", "", "is not known"),
    ],
)
def test_a_bad_header_is_named(old: str, new: str, word: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="row 1") as caught:
        catalog.devices(with_rows(tmp_path, "header", old, new))
    assert word in str(caught.value)


def test_files_that_are_missing_empty_or_not_text(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    shutil.copytree(DATA, folder)
    for content, word in ((None, "no such file"), (b"", "is empty"), (b"\xff\xff", "not UTF-8"),
                          (HARDWARE.read_bytes().splitlines(keepends=True)[0], "no rows")):  # fmt: skip
        catalog.devices.cache_clear()
        path = folder / "hardware.csv"
        path.unlink(missing_ok=True)
        if content is not None:
            path.write_bytes(content)
        with pytest.raises(InputError, match=word):
            catalog.devices(folder)


def test_a_pipe_or_a_device_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    for path in (tmp_path / "pipe.yaml", Path("/dev/zero"), tmp_path):
        with pytest.raises(InputError, match="not a file of text"):
            read_text(path)


def test_an_inventory_that_does_not_add_up_is_named(tmp_path: Path) -> None:
    old = "BF16,93,666624,1333248"
    data = with_rows(tmp_path, "bytes", old, "BF16,93,666624,1333249", "models/kimi-k3.tensors.csv")
    with pytest.raises(InputError, match="is not count x shape x 2 B"):
        catalog.inventory(data)


def test_windows_line_ends_and_a_byte_order_mark_change_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    shutil.copytree(DATA, folder)
    text = HARDWARE.read_text(encoding="utf-8")
    (folder / "hardware.csv").write_bytes(("\ufeff" + text.replace("\n", "\r\n")).encode("utf-8"))
    assert catalog.devices(folder) == catalog.devices()


def test_every_table_loads_and_every_source_is_used() -> None:
    registry.check_all()
    used = {i for _, load in registry.TABLES.values() for row in load() for i in getattr(row, "named_sources", ())}
    in_code = {"ocp_mx", "nvfp4_docs"}  # named by the notebooks for the format's definition
    in_readers_files = {"own_price"}
    in_tests = {"glm5_code", "hub_deepseek_v32", "sglang_skill"}
    assert set(catalog.sources()) - used - in_code - in_readers_files <= in_tests


def test_the_driver_shows_what_the_log_says() -> None:
    fact = catalog.device_fact("h20-96", "memory_shown")
    assert (fact.value, fact.unit) == (97_871, "MiB")
    assert round(units.convert(97_871, "MiB", "GB"), 1) == 102.6
    with pytest.raises(InputError, match="Did you mean 'h20-96'"):
        catalog.device_fact("h20-69", "memory_shown")
    with pytest.raises(InputError, match="Did you mean 'memory_shown'"):
        catalog.device_fact("h20-96", "memory_show")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("cards: -1", ["cards = -1", "greater than or equal to 1"]),
        ("cards: many", ["cards = 'many'"]),
        ("cards: .nan", ["cards = nan"]),
        ("cards: true", ["must not be true or false"]),
        ("cards: 32.5", ["cards = 32.5"]),
        ("card: 32", ["parameter 'card' is not known", "Did you mean 'cards'?"]),
        ("cards: 1\ncards: 2", ["'cards' stands twice"]),
        ("- 1", ["must hold lines of 'parameter: value'"]),
        ("cards: [", ["not valid YAML"]),
        ("cards: !!python/object/apply:os.system ['true']", ["not valid YAML"]),
        ("[" * 10_000, ["scenario.yaml"]),
        ("cards: &a 3\ndevice: *a", ["aliases have no place"]),
        ("cards: !!int foo", ["not valid YAML"]),
        ("# " + "x" * 2**26, ["over"]),
    ],
)
def test_a_bad_scenario_is_named(text: str, words: list[str], tmp_path: Path) -> None:
    path = tmp_path / "scenario.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        load_scenario(str(path))
    assert "scenario.yaml" in str(caught.value)
    assert "\n" not in str(caught.value)
    for word in words:
        assert word in str(caught.value)


def test_a_scenario_names_only_what_it_changes(tmp_path: Path) -> None:
    path = tmp_path / "more.yaml"
    path.write_text("cards: 64\n", encoding="utf-8")
    assert load_scenario(str(path)) == load_scenario("base", {"cards": "64"})
    path.write_text("", encoding="utf-8")
    assert load_scenario(str(path)) == load_scenario()
    with pytest.raises(InputError, match="Did you mean 'base'"):
        load_scenario("bas")
    with pytest.raises(InputError, match="Did you mean 'cards'"):
        load_scenario("base", {"crads": 3})


def test_the_base_scenario_gives_every_parameter_a_default() -> None:
    assert set(load_scenario().model_dump()) == set(Scenario.model_fields)
    assert all(field.description for field in Scenario.model_fields.values())
    assert (SCENARIOS / "base.yaml").is_file()


def test_gb_and_gib_are_two_units() -> None:
    assert units.convert(1, "GiB", "B") == 2**30
    assert units.convert(1, "GB", "B") == 10**9
    assert units.quantity(units.convert(1_560_860_324_864, "B", "GiB"), "GiB", ",.1f") == "1,453.7\u00a0GiB"
    with pytest.raises(InputError, match="cannot be shown in"):
        units.convert(1, "GB", "tokens")
    with pytest.raises(InputError, match="Did you mean 'GiB'"):
        units.unit("Gib")
    with pytest.raises(InputError, match="not a finite number"):
        units.number(float("nan"))
    for spec in ("d", "zz", ",.999999999f", ">9999999", "{}", "%d", "c"):
        with pytest.raises(InputError, match="format"):
            units.number(1.5, spec)


@given(st.integers(0, 2**60), st.sampled_from(["B", "kB", "MB", "GB", "KiB", "MiB", "GiB"]))
def test_there_and_back_is_exact_for_whole_numbers(value: int, unit: str) -> None:
    assert units.convert(units.convert(value, unit, "B"), "B", unit) == value


@given(st.text(max_size=20), st.lists(st.text(min_size=1, max_size=20), max_size=5))
def test_a_near_name_is_always_a_sentence(name: str, known: list[str]) -> None:
    assert near(name, known).endswith((".", "?"))


def test_a_message_is_one_line_of_bearable_length() -> None:
    message = str(InputError("x" * 100_000 + "\n\ty"))
    assert len(message) < 1_100 and "\n" not in message and message.endswith("y")
    assert near("zzz", [f"name{i}" for i in range(300)]).endswith("and 285 more.")


def test_a_result_carries_its_trail() -> None:
    result = res.make("a.b", 27_648, unit="B/token", grade="exact", equation=s.latent_kv * s.layers,
                      inputs={s.latent_kv: 512, s.layers: 54}, sources=["k3_config"])  # fmt: skip
    assert result.equation == "R_{kv} L"
    assert result.inputs["latent_kv"] == {"value": 512, "unit": "features"}
    again = res.make("a.c", True, unit="", grade="derived", inputs=[result])
    assert again.inputs == {"a.b": {"value": 27_648, "unit": "B/token"}}


GOOD = dict(value=1.0, unit="GB", grade="derived", low=0.5, high=2.0, sources=["k3_config"])


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (dict(unit="gb"), "unit 'gb' is not known. Did you mean 'GB'?"),
        (dict(grade="sure"), "grade 'sure' is not known"),
        (dict(low=None), "needs low and high"),
        (dict(low=1.5), "is not between"),
        (dict(value=float("nan")), "is not finite"),
        (dict(grade="exact"), "has no low and high"),
        (dict(sources=["k3_confg"]), "Did you mean 'k3_config'?"),
        (dict(sources=[]), "names neither a source nor an input"),
        (dict(value="yes"), "a verdict has no unit"),
        (dict(inputs={"x": 1}), "neither a declared symbol nor a result"),
    ],
)
def test_a_result_without_a_sound_trail_is_refused(change: dict[str, object], word: str) -> None:
    assert res.make("a.b", **GOOD).grade == "derived"  # type: ignore[arg-type]
    with pytest.raises(InputError) as caught:
        res.make("a.b", **{**GOOD, **change})  # type: ignore[arg-type]
    assert word in str(caught.value)


@pytest.mark.parametrize("key", ["k3", "K3.bytes", "k3..bytes", "k3.by tes", "k3.<b>", "../k3.x", ""])
def test_a_key_is_dotted_and_lower_case(key: str) -> None:
    with pytest.raises(InputError, match="dotted and lower case"):
        res.make(key, **GOOD)  # type: ignore[arg-type]


def test_a_key_recorded_twice_is_refused() -> None:
    one = res.make("a.b", **GOOD)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="recorded twice"):
        res.together([one, one])


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_results_survive_the_file(value: float) -> None:
    table = res.together([res.make("a.b", value, unit="GB", grade="measured", low=value, high=value,
                                   sources=["k3_config"])])  # fmt: skip
    text = res.to_json(table)
    assert text.endswith("}\n")
    loaded = {k: res.from_dict(k, v) for k, v in json.loads(text).items()}
    assert loaded["a.b"].value == table["a.b"].value
    rows = list(csv.DictReader(io.StringIO(res.to_csv(table))))
    assert float(rows[0]["value"]) == value


def test_a_results_file_that_is_none_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    for text in ("", "[]", "{", '{"a.b": 1}', '{"a.b": {"value": 1, "unit": "GB", "grade": "exact", "extra": 1}}'):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(InputError):
            res.load(path)

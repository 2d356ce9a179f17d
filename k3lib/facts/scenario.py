"""The parameters a user may change. A scenario is a small YAML file of overrides; every value is typed and bounded."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from k3lib.errors import InputError, near
from k3lib.facts.catalog import checkpoints, devices, model_names
from k3lib.facts.clusters import clusters
from k3lib.facts.decisions import Mix
from k3lib.facts.paths import SCENARIOS, shown
from k3lib.facts.price_parameters import current, parsed, price_parameter_names, with_parameters
from k3lib.facts.problems import MOST_SETS, set_by_hand
from k3lib.facts.tables import problem, read_text

# Ways to store quantised weights that the account knows.
WEIGHTS = ("mxfp4", "fp8", "int4", "bf16")


class Scenario(BaseModel):
    """All parameters. `data/scenarios/base.yaml` gives the defaults; a notebook's parameter cell names its own."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=False)

    cards: Annotated[int, Field(ge=1, le=4096, description="accelerator cards of the plan")]
    device: Annotated[str, Field(min_length=1, description="card, by its name in data/hardware.csv")]
    cards_per_node: Annotated[int, Field(ge=1, le=4096, description="cards of one server")]
    layout: Annotated[str, Field(min_length=1, description="parallel layout of the plan, as tp8,pp4")]
    engine: Annotated[str, Field(pattern="^(vllm|sglang)$", description="engine of the plan: vllm or sglang")]
    max_model_len: Annotated[int, Field(ge=1, le=2**24, description="longest request of the plan in tokens")]
    nics: Annotated[int, Field(ge=1, le=64, description="network cards of a server of the plan, 400 Gb/s each")]
    weights: Annotated[str, Field(description="how the quantised weights are stored: mxfp4, fp8, int4 or bf16")]
    superpod: Annotated[str, Field(min_length=1, description="superpod beside the plan, a name in data/clusters.csv")]
    ttft_goal_s: Annotated[
        float, Field(ge=0, le=86400, description="goal for the first token in s; 0: each workload's")
    ]
    tpot_goal_ms: Annotated[float, Field(ge=0, le=1e6, description="goal for each token in ms; 0: each workload's own")]
    region: Annotated[str, Field(pattern="^(cn|other)$", description="where it stands: cn (mainland China) or other")]
    data_stays: Annotated[
        str, Field(pattern="^(yes|no)$", description="whether texts may not leave the house: yes, no")
    ]
    mix: Annotated[Mix, Field(description="shares of the output by workload in per cent, as online-chat:70;rag:30")]
    mtok_per_day: Annotated[float, Field(gt=0, le=1e9, description="million tokens of output on a day")]
    utilisation: Annotated[float, Field(gt=0, le=1, description="share of the time that it is busy, from 0 to 1")]
    budget_cny: Annotated[float, Field(ge=0, le=1e13, description="what may be invested at once, in yuan")]
    prices: Annotated[str, Field(description="prices that differ, as h20_server_price_cny:1.5e6;cny_per_usd:6.9")]
    price_file: Annotated[str, Field(description="a file of prices in place of the project's, as data/prices.csv")]
    learn_set: Annotated[
        int, Field(ge=0, le=MOST_SETS, description="set of the exercises' numbers; 0: the scenario's own")
    ]
    learn_values: Annotated[str, Field(description="numbers of exercises that differ, as kv-per-token.cache_bytes:1")]
    reference_models: Annotated[
        str, Field(min_length=1, description="known models to check the account on, separated by commas, or 'all'")
    ]

    @field_validator("device")
    @classmethod
    def _known_device(cls, name: str) -> str:
        known = {device for device, _ in devices()}
        if name not in known:
            raise ValueError(f"device '{name}' is not in data/hardware.csv. {near(name, known)}")
        return name

    @field_validator("prices")
    @classmethod
    def _known_prices(cls, text: str) -> str:
        try:
            if text:
                current(text)
        except InputError as error:
            raise ValueError(str(error)) from None
        return text

    @field_validator("learn_values")
    @classmethod
    def _known_numbers(cls, text: str) -> str:
        try:
            if text:
                set_by_hand(text)
        except InputError as error:
            raise ValueError(str(error)) from None
        return text

    @field_validator("weights")
    @classmethod
    def _known_form(cls, form: str) -> str:
        if form not in WEIGHTS:
            raise ValueError(f"format '{form}' is not known. {near(form, WEIGHTS)}")
        return form

    @field_validator("superpod")
    @classmethod
    def _known_superpod(cls, name: str) -> str:
        known = {row.cluster_id: row for row in clusters().values()}
        if name not in known:
            raise ValueError(f"cluster '{name}' is not in data/clusters.csv. {near(name, known)}")
        if known[name].kind == "servers":
            pods = [row.cluster_id for row in known.values() if row.kind != "servers"]
            raise ValueError(f"'{name}' is made of servers, no superpod. Choose {', '.join(pods[:-1])} or {pods[-1]}.")
        return name

    @model_validator(mode="after")
    def _goes_together(self) -> Scenario:
        if self.cards % self.cards_per_node:
            raise ValueError(f"cards = {self.cards}: does not fill servers of cards_per_node = {self.cards_per_node}")
        return self

    @field_validator("reference_models")
    @classmethod
    def _known_models(cls, names: str) -> str:
        for name in model_list(names):
            if name not in model_names():
                raise ValueError(f"'{name}' is not a known model. {near(name, model_names())}")
        return names


def model_list(names: str) -> list[str]:
    """Names separated by commas, in lower case; 'all' is every known model."""
    wanted = [name.strip().lower() for name in names.split(",") if name.strip()]
    return [row.model_id for row in checkpoints()] if wanted == ["all"] else wanted


def parameter_names() -> list[str]:
    """Every parameter a scenario or `-p` may set."""
    return [*Scenario.model_fields, *price_parameter_names()]


BASE = "base"


def _check_names(where: str, values: Mapping[Any, Any]) -> None:
    for name, value in values.items():
        if name not in parameter_names():
            raise InputError(f"{where}: parameter '{name}' is not known. {near(str(name), parameter_names())}")
        if isinstance(value, bool):
            raise InputError(f"{where}: {name} = {value}: must not be true or false")


def _with_prices(where: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters of prices moved into the one text that holds them all; a later one takes the place of an earlier."""
    plain = {name: value for name, value in values.items() if name in Scenario.model_fields}
    own = {name: value for name, value in values.items() if name not in plain}
    if not own:
        return plain
    with_parameters(own, where=where)
    before = parsed(str(plain.get("prices", "")))
    return plain | {"prices": ";".join(f"{name}:{value}" for name, value in {**before, **own}.items())}


def _validated(where: str, values: Mapping[str, Any]) -> Scenario:
    try:
        return Scenario.model_validate(dict(values))
    except ValidationError as error:
        raise InputError(f"{where}: {problem(error)}") from None


def scenario_path(name_or_file: str) -> Path:
    """The file of a named scenario, or the given file. Raises InputError with the nearest name."""
    if name_or_file.endswith((".yaml", ".yml")) or "/" in name_or_file:
        return Path(name_or_file)
    known = {p.stem: p for p in sorted(SCENARIOS.glob("*.yaml"))}
    if name_or_file not in known:
        raise InputError(f"scenario '{name_or_file}' is not in data/scenarios. {near(name_or_file, known)}")
    return known[name_or_file]


class _UniqueKeys(yaml.SafeLoader):
    """Safe YAML that refuses a key that stands twice."""

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            raise yaml.constructor.ConstructorError(None, None, "aliases have no place in a scenario")
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [self.construct_object(k, deep=deep) for k, _ in node.value]
        for key in keys:
            if keys.count(key) > 1:
                raise yaml.constructor.ConstructorError(None, None, f"'{key}' stands twice", node.start_mark)
        return super().construct_mapping(node, deep=deep)


def _read(path: Path) -> dict[str, Any]:
    where = shown(path)
    try:
        values = yaml.load(read_text(path), Loader=_UniqueKeys)  # noqa: S506 - a SafeLoader
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        raise InputError(f"{where}: not valid YAML ({error})") from None
    except RecursionError:
        raise InputError(f"{where}: nested too deep to be a scenario") from None
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise InputError(f"{where}: must hold lines of 'parameter: value', holds a {type(values).__name__}")
    _check_names(where, values)
    return _with_prices(where, values)


def load_scenario(name_or_file: str = BASE, overrides: Mapping[str, Any] | None = None, where: str = "-p") -> Scenario:
    """A scenario by name or file on top of the base one, with single parameters overridden.

    where: what a message calls the overrides.

    Raises InputError that names the file or parameter, what is wrong, and the near name for a typo.
    """
    values = _read(scenario_path(BASE))
    _validated(shown(scenario_path(BASE)), values)
    if name_or_file != BASE:
        path = scenario_path(name_or_file)
        values |= _read(path)
        _validated(shown(path), values)
    if overrides:
        _check_names(where, overrides)
        values = _with_prices(where, {**values, **overrides})
    return _validated(where if overrides else shown(scenario_path(name_or_file)), values)


def in_words(scenario: Scenario) -> str:
    """A scenario as pages name it: what it changes of the base one."""
    base = load_scenario().model_dump()
    changed = [f"{name} = {value}" for name, value in scenario.model_dump().items() if value != base[name]]
    return f"the base scenario with {', '.join(changed)}" if changed else "the base scenario"

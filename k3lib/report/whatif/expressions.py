"""The account's equations as functions of a script, by SymPy's own printer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import sympy as sp

from k3lib.account import costs, passes, sharding
from k3lib.account import symbols as s
from k3lib.account.tensors import SCALE_GROUP_SUFFIX, Stored
from k3lib.deploy import ledger as led
from k3lib.deploy import passes as pt
from k3lib.deploy.setup import NOT_STREAMED
from k3lib.engines.rules import TABLE_GROUPS, on_stage, way
from k3lib.errors import InputError
from k3lib.models.model import Model

# What a layout or a stage decides; all else of a model is a number on the page.
OF_LAYOUT = (s.tensor_parallel, s.experts_held, s.width_held, s.projection_padding, s.layers, s.layers_mla,
             s.layers_kda, s.layers_gqa, s.layers_dense, s.layers_moe)  # fmt: skip
# Whether a stage is the first of the pipeline, and the last; bytes of a token in one layer.
FIRST, LAST, TOKEN = (sp.Symbol(name, nonnegative=True) for name in ("first", "last", "token_bytes"))
# Experts used on the busiest card: the same on every stage, so that it is worked out once for all.
BUSIEST = sp.Symbol("busiest_experts", nonnegative=True)
WRITTEN = (sp.Symbol, sp.Number, sp.NumberSymbol, sp.Add, sp.Mul, sp.Pow, sp.Max, sp.Min, sp.ceiling, sp.floor, sp.exp,
           sp.log, sp.Tuple)  # fmt: skip

DIGITS = 17  # that tell every number of double precision apart


@dataclass(frozen=True)
class Function:
    """A function of the script. symbols: fields of its one argument. expressions: what it returns, one or several."""

    name: str
    expressions: tuple[sp.Expr, ...]

    @property
    def symbols(self) -> tuple[sp.Symbol, ...]:
        """Symbols that it needs, by name."""
        return tuple(sorted({x for e in self.expressions for x in e.free_symbols}, key=str))

    def text(self) -> str:
        """The function. Raises InputError for what SymPy's printer, or the page, has no word for."""
        for expression in self.expressions:
            for part in sp.preorder_traversal(expression):
                if not isinstance(part, WRITTEN):
                    raise InputError(f"{self.name}: '{type(part).__name__}' has no translation to a script: {part}")
        steps, last = sp.cse(self.expressions, symbols=sp.numbered_symbols("w"), order="none")
        lines = [f"const {{{', '.join(map(str, self.symbols))}}} = v;"]
        lines += [f"const {name} = {_written(step)};" for name, step in steps]
        found = [_written(e) for e in last]
        lines.append(f"return {found[0] if len(found) == 1 else '[' + ', '.join(found) + ']'};")
        return f"{self.name}: function (v) {{ {' '.join(lines)} }}"


def _written(expression: sp.Expr) -> str:
    digits = {x: sp.Float(float(x), DIGITS) for x in expression.atoms(sp.Float)}
    text = str(sp.jscode(expression.xreplace(digits)))
    if "//" in text or "\n" in text:
        raise InputError(f"SymPy has no script for {expression}")
    return text


def script(functions: Iterable[Function]) -> str:
    """All functions as one object."""
    return "const equations = {\n" + ",\n".join(f.text() for f in functions) + "\n};"


def of_model(model: Model) -> list[Function]:
    """The ledger, the caches and the passes of one model: its own values are numbers in them."""
    fixed = {x: sp.Integer(value) for x, value in model.values.items() if x not in OF_LAYOUT}

    def made(name: str, *expressions: sp.Expr) -> Function:
        return Function(name, tuple(sp.sympify(e).xreplace(fixed) for e in expressions))

    found = [made(name, e) for name, e in _weights(model).items()]
    found += [
        made("residual_bytes", sharding.residual_bytes()),
        made("block_bytes", sharding.block_bytes(TOKEN)),
        made("token_bytes", sharding.mla_token_bytes()),
        made("state_bytes_of_layer", sharding.kda_state_bytes()),
        made("routing", passes.tokens_per_expert(), passes.busiest_card_experts()),
        made("exchange_bytes", passes.exchange_bytes()),
        made("launched_us", passes.launched_us(s.pass_work_us)),
        made("hop_us", passes.hop_us()),
        made("pass_terms", *terms().values()),
    ]
    return found


def terms() -> dict[str, sp.Expr]:
    """The terms of a pass of a model with MLA, KDA and experts, in the order of their sum."""
    experts = passes.experts_us().xreplace({passes.busiest_card_experts(): BUSIEST})
    return {pt.FIXED: passes.decode_fixed_us(), pt.DENSE: passes.dense_us(), pt.EXPERTS: experts,
            pt.KDA: passes.kda_us(), pt.ATTENTION: passes.mla_us(), pt.EXCHANGE: passes.exchanges_us(),
            pt.PROMPT: passes.other_prompt_us(), pt.ENGINE: passes.engine_us()}  # fmt: skip


def _weights(model: Model) -> dict[str, sp.Expr]:
    """What the arrays of each line of the ledger add up to on one card of a stage, and what a pass streams."""
    arrays = [a for a in model.arrays if not a.group.startswith("mtp")]
    here = {id(a): _place(a) for a in arrays}

    def held(chosen: Iterable[Stored], how: str = "") -> sp.Expr:
        return sp.Add(
            *(here[id(a)] * (a.bytes if how == "whole" else sharding.weight_bytes(a, way(a))) for a in chosen)
        )

    routed, scales = ([a for a in arrays if a.group == g] for g in (led.ROUTED, led.SCALES))
    rest = [a for a in arrays if a.group not in (led.ROUTED, led.SCALES)]
    split = [a for a in rest if way(a) == sharding.SPLIT]
    mlps = [a for a in split if a.group.removesuffix(SCALE_GROUP_SUFFIX) in ("shared", "dense0")]
    tables = [a for a in split if a.group in TABLE_GROUPS]
    others = [a for a in split if a not in mlps and a not in tables]
    streamed = [a for a in arrays if a.group not in NOT_STREAMED]
    used = sp.Add(*(here[id(a)] * sharding.weight_bytes(replace(a, bytes=a.params), way(a)) for a in streamed))
    return {
        "routed_whole": held(routed, "whole"), "scales_whole": held(scales, "whole"),
        "experts_held_bytes": held([*routed, *scales]), "repack_bytes": sharding.repack_bytes(routed) / s.layers_moe,
        "mlps_whole": held(mlps, "whole"), "mlps_split": held(mlps), "tables_split": held(tables),
        "others_split": held(others), "copied_whole": held(a for a in rest if way(a) == sharding.COPIED),
        "projections_padding": sharding.projection_padding_bytes(),
        "stage_bytes": held(streamed), "stage_work": 2 * used,
    }  # fmt: skip


def _place(array: Stored) -> sp.Expr:
    """1 on a stage that holds an array, 0 on others, by whether the stage is the first and the last."""
    if on_stage(array, False, False):
        return sp.Integer(1)
    return FIRST if on_stage(array, True, False) else LAST


# What the page asks of a cost: names of equations in k3lib.account.costs.
COSTS = ("investment_cny", "capital_cny", "running_cny", "monthly_cny", "energy_kwh", "availability", "output_mtok",
         "unit_cny", "blended_cny", "energy_per_mtok", "api_cny", "api_levelled", "break_even_utilisation",
         "break_even_mtok", "break_even_hours")  # fmt: skip


def of_costs(lines: Mapping[str, tuple[str, str]]) -> list[Function]:
    """The costs; lines: basis and currency of a line of a bill, by the name of its function."""
    found = [Function(name, (costs.line_cny(*line),)) for name, line in lines.items()]
    return [*found, *(Function(name, (getattr(costs, name)(),)) for name in COSTS)]

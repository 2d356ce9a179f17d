"""Names, literals and calls of Python in JavaScript: a small, strict part of the language.

What is not in this part is refused by name, with the line. Lists and tuples become arrays, dictionaries a map whose
keys may be arrays, a symbol of the account its name. NumPy's functions work on single numbers: all that is translated
is elementwise.
"""

from __future__ import annotations

import ast
import inspect
import json
import math
from collections.abc import Collection, Mapping, Sequence
from types import ModuleType
from typing import Any

import numpy as np
import sympy as sp

from k3lib.errors import InputError

# Functions of Python and of its libraries, by what does the same in the script.
BUILTINS = ("len", "sum", "min", "max", "any", "all", "zip", "range", "reversed", "enumerate", "sorted", "round", "str",
            "int", "float", "abs", "list", "tuple", "dict", "deque", "next", "map", "divmod")  # fmt: skip
LIBRARY = {
    math.floor: "Math.floor", math.ceil: "Math.ceil", math.log: "Math.log", math.exp: "Math.exp",
    math.sqrt: "Math.sqrt", math.isfinite: "Number.isFinite", math.hypot: "Math.hypot",
    np.maximum: "Math.max", np.minimum: "Math.min", np.exp: "Math.exp", np.log2: "Math.log2", np.log: "py.log",
    np.interp: "py.interp", np.clip: "py.clip", np.arange: "py.arange", np.median: "py.median",
    np.percentile: "py.percentile",
}  # fmt: skip
# Those of an array that stand for one number here: what comes out is the argument of this place.
AS_IS = {np.asarray: 0, np.array: 0, np.full_like: 1}
METHODS = {"append": "push", "popleft": "shift", "items": "py.items", "values": "py.values", "keys": "py.keys",
           "get": "py.get", "count": "py.count", "mean": "py.mean", "setdefault": "py.setdefault",
           "endswith": "py.endswith", "join": "py.join",
           "tolist": "py.list", "reshape": "py.reshape", "startswith": "py.startswith"}  # fmt: skip


# Local names that mean something else in a script: they get a mark.
TAKEN = frozenset({"new", "function", "var", "let", "const", "default", "delete", "this", "switch", "case", "void",
                   "typeof", "catch", "do", "enum", "export", "super", "throw", "t", "py"})  # fmt: skip


def local_name(name: str) -> str:
    """A local name as the script has it."""
    return f"{name}_" if name in TAKEN else name


class Calls(ast.NodeVisitor):
    """Writes the expressions of one module. names: the name in the script of each object of Python that is in it.

    methods: names of the methods of all classes that are translated.
    """

    def __init__(self, module: ModuleType, names: Mapping[int, str], where: str, methods: Collection[str]) -> None:
        self.module, self.names, self.where, self.methods = module, names, where, methods
        self.local: set[str] = set()
        self.owner: type | None = None  # the class that is being written

    def generic_visit(self, node: ast.AST) -> Any:
        """Refuse what has no translation."""
        raise self.refused(node, type(node).__name__)

    def refused(self, node: ast.AST, what: str) -> InputError:
        """The error for a part that has no translation."""
        return InputError(f"{self.where}, line {getattr(node, 'lineno', '?')}: '{what}' has no translation to a script")

    def many(self, nodes: Sequence[ast.AST]) -> str:
        """Several expressions with commas between."""
        return ", ".join(self.visit(node) for node in nodes)

    def test(self, node: ast.expr) -> str:
        """An expression where its truth is asked for: empty lists and dictionaries are false in Python only."""
        if isinstance(node, ast.BoolOp):
            sign = " && " if isinstance(node.op, ast.And) else " || "
            return "(" + sign.join(self.test(value) for value in node.values) + ")"
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return f"!{self.test(node.operand)}"
        if isinstance(node, ast.Compare):
            return str(self.visit(node))
        return f"py.truth({self.visit(node)})"

    # Names and what they stand for

    def found(self, node: ast.expr) -> Any:
        """The object of Python that a name of the module stands for. Raises LookupError for a local name."""
        if isinstance(node, ast.Name) and node.id not in self.local:
            if hasattr(self.module, node.id):
                return getattr(self.module, node.id)
            raise LookupError(node.id)
        if isinstance(node, ast.Attribute):
            owner = self.found(node.value)
            if isinstance(owner, ModuleType):
                return getattr(owner, node.attr)
        raise LookupError

    def written(self, value: Any, node: ast.AST) -> str:
        """An object of Python in the script: by its name there, or as a literal."""
        if id(value) in self.names:
            return self.names[id(value)]
        if isinstance(value, sp.Symbol):
            return json.dumps(str(value))
        if isinstance(value, float) and not math.isfinite(value):
            return "Infinity" if value > 0 else "-Infinity"
        if value is None or isinstance(value, (bool, int, float, str)):
            return json.dumps(value)
        if isinstance(value, (tuple, list)):
            return f"[{', '.join(self.written(one, node) for one in value)}]"
        if isinstance(value, dict):
            pairs = (f"[{self.written(k, node)}, {self.written(v, node)}]" for k, v in value.items())
            return f"py.dict([{', '.join(pairs)}])"
        raise self.refused(node, ast.unparse(node))

    def visit_Name(self, node: ast.Name) -> str:
        """A local name as it is, a name of the module by what it stands for."""
        if node.id == "self":
            return "this"
        if node.id in self.local:
            return local_name(node.id)
        try:
            return self.written(self.found(node), node)
        except LookupError:
            if node.id in BUILTINS:
                return f"py.{node.id}"
            raise self.refused(node, node.id) from None

    def visit_Attribute(self, node: ast.Attribute) -> str:
        """A name inside a module, or a field."""
        try:
            return self.written(self.found(node), node)
        except LookupError:
            if node.attr == "T":
                return f"py.transposed({self.visit(node.value)})"
            if node.attr in self.methods and isinstance(node.ctx, ast.Load):
                return f"py.bound({self.visit(node.value)}, {json.dumps(node.attr)})"
            return f"{self.visit(node.value)}.{node.attr}"

    def visit_Constant(self, node: ast.Constant) -> str:
        """A literal."""
        return self.written(node.value, node)

    # Calls

    def visit_Call(self, node: ast.Call) -> str:
        """A call of what is translated, of a known function, or of a method."""
        try:
            called = self.found(node.func)
        except LookupError:
            called = None
        if called is not None:
            return self.call_of(called, node)
        if isinstance(node.func, ast.Name) and node.func.id not in self.local:
            return self.call_by_name(node.func.id, node)
        if isinstance(node.func, ast.Name):
            return f"{local_name(node.func.id)}({self.plain(node)})"
        if isinstance(node.func, ast.Attribute):
            return self.call_of_method(node.func, node)
        if isinstance(node.func, ast.IfExp):  # one of two functions is called
            one, other = (ast.Call(f, node.args, node.keywords) for f in (node.func.body, node.func.orelse))
            return f"({self.test(node.func.test)} ? {self.visit(one)} : {self.visit(other)})"
        raise self.refused(node, ast.unparse(node.func))

    def plain(self, node: ast.Call) -> str:
        """Arguments of a call that names none."""
        if node.keywords:
            raise self.refused(node, f"{node.keywords[0].arg}=")
        return self.many(node.args)

    def call_of(self, called: Any, node: ast.Call) -> str:
        """A call of an object of the module."""
        name = getattr(called, "__name__", "")
        if called in AS_IS:
            return str(self.visit(node.args[AS_IS[called]]))  # the type of its numbers is the script's only one
        if called is np.zeros_like:
            return "0"
        if called is np.where:
            return f"({self.test(node.args[0])} ? {self.visit(node.args[1])} : {self.visit(node.args[2])})"
        if called in LIBRARY:
            return f"{LIBRARY[called]}({self.plain(node)})"
        if id(called) in self.names:
            new = "new " if inspect.isclass(called) and not issubclass(called, sp.Basic) else ""
            if node.keywords and any(isinstance(a, ast.Starred) for a in node.args):
                places = json.dumps(list(inspect.signature(called).parameters))
                pairs = ", ".join(f"{k.arg}: {self.visit(k.value)}" for k in node.keywords)
                return f"{new}{self.names[id(called)]}(...py.placed({places}, [{self.many(node.args)}], {{{pairs}}}))"
            if inspect.isclass(called) and any(k.arg is None for k in node.keywords):
                return f"py.made({self.names[id(called)]}, {self.visit(node.keywords[0].value)})"
            return f"{new}{self.names[id(called)]}({self.in_order(called, node)})"
        if name in ("replace", "fields", "bisect_left", "bisect_right", "deque"):
            return self.call_by_name(name, node)
        raise self.refused(node, ast.unparse(node.func))

    def in_order(self, called: Any, node: ast.Call, skip: int = 0) -> str:
        """Arguments by their places, those that are named too. skip: parameters that are not written, as self."""
        parts = [self.visit(a) for a in node.args]
        if node.keywords:
            places = list(inspect.signature(called).parameters)[skip:]
            named = {k.arg: self.visit(k.value) for k in node.keywords}
            if None in named or any(isinstance(a, ast.Starred) for a in node.args):
                raise self.refused(node, "**")
            last = max(places.index(str(name)) for name in named)
            parts += [named.get(place, "undefined") for place in places[len(parts) : last + 1]]
        return ", ".join(parts)

    def call_by_name(self, name: str, node: ast.Call) -> str:
        """A call of one of Python's own functions."""
        named = {k.arg: k.value for k in node.keywords if k.arg != "strict"}
        if name == "getattr":
            return f"{self.visit(node.args[0])}[{self.visit(node.args[1])}]"
        if name == "replace":
            pairs = ", ".join(f"{key}: {self.visit(value)}" for key, value in named.items())
            return f"py.replace({self.visit(node.args[0])}, {{{pairs}}})"
        if name in ("fields", "bisect_left", "bisect_right"):
            return f"py.{name}({self.plain(node)})"
        if name not in BUILTINS:
            raise self.refused(node, name)
        if name == "next" and isinstance(node.args[0], ast.GeneratorExp) and len(node.args) == 2:
            return f"py.first({self.visit(node.args[0])}, {self.visit(node.args[1])})"
        if name == "sum" and not named:
            return f"py.sum({self.many(node.args)})"
        if name in ("min", "max", "sorted") and named:
            options = ", ".join(f"{key}: {self.visit(value)}" for key, value in named.items())
            return f"py.{name}_by([{self.many(node.args)}], {{{options}}})"
        if named:
            raise self.refused(node, f"{next(iter(named))}=")
        return f"py.{name}({self.many(node.args)})"

    def call_of_method(self, function: ast.Attribute, node: ast.Call) -> str:
        """A method: one of Python's own by its other name, else by its own."""
        if function.attr == "fromkeys":
            return f"py.fromkeys({self.plain(node)})"
        owner = self.visit(function.value)
        other = METHODS.get(function.attr, function.attr)
        if other.startswith("py."):
            return f"{other}({owner}{', ' if node.args else ''}{self.plain(node)})"
        if owner == "this" and node.keywords:
            return f"{owner}.{other}({self.in_order(getattr(self.owner, other), node, 1)})"
        return f"{owner}.{other}({self.plain(node)})"

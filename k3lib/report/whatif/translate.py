"""Functions and classes of the library as a script, translated statement by statement; never written a second time.

The part of Python that is known is that of the closed loop, of the caches and of the engines' rules. Whatever else
stands in a chosen function is refused by name and line, so that a change of the library cannot pass unseen.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from types import ModuleType
from typing import Any

from k3lib.errors import InputError
from k3lib.report.whatif.calls import local_name
from k3lib.report.whatif.phrases import Phrases

Chosen = Mapping[ModuleType, Sequence[str]]


def name_of(module: ModuleType, name: str) -> str:
    """What a function or class of a module is called in the script."""
    return f"{module.__name__.rsplit('.', 1)[-1]}_{name.rstrip('*').replace('.', '_')}"


def script(chosen: Chosen, given: Mapping[str, Any]) -> str:
    """The chosen functions, classes and constants in their order, one below the other.

    chosen: names by module; "Class.method" is a method as a function of its own. given: objects that the script has
    otherwise, by their name there. A star behind a function's name makes it pause in every round of its loops, so that
    a page can do other things. Raises InputError for what has no translation.
    """
    names = {id(value): name for name, value in given.items()}
    whole = [(module, name) for module, wanted in chosen.items() for name in wanted if "." not in name]
    classes = [_object(module, name) for module, name in whole]
    names |= {id(made): name_of(*place) for made, place in zip(classes, whole, strict=True)}
    parts = [pair for made in classes if inspect.isclass(made) for pair in vars(made).items()]
    methods = {name for name, part in parts if inspect.isfunction(part) and not name.startswith("__")}
    return "\n".join(_piece(module, name, names, methods) for module, wanted in chosen.items() for name in wanted)


def _object(module: ModuleType, name: str) -> Any:
    plain = name.rstrip("*")
    if not hasattr(module, plain):
        raise InputError(f"{module.__name__}: has no '{plain}' to translate")
    return getattr(module, plain)


@lru_cache(maxsize=64)
def _tree(module: ModuleType) -> tuple[str, ast.Module]:
    source = inspect.getsource(module)
    return str(inspect.getsourcefile(module)), ast.parse(source)


def _piece(module: ModuleType, name: str, names: Mapping[int, str], methods: Collection[str]) -> str:
    path, tree = _tree(module)
    where = path.rsplit("/k3lib/", 1)[-1]
    outer, _, inner = name.rstrip("*").partition(".")
    node = _named(tree.body, outer)
    if node is not None and inner and isinstance(node, ast.ClassDef):
        node = _named(node.body, inner)
    if node is None:
        raise InputError(f"{where}: has no '{name}' to translate")
    writer = _Writer(module, names, where, methods)
    writer.pausing = name.endswith("*")
    called = name_of(module, name)
    if isinstance(node, ast.FunctionDef):
        return writer.function(node, called)
    if isinstance(node, ast.ClassDef):
        return writer.class_of(node, called, getattr(module, name))
    return f"const {called} = {writer.visit(node.value)};"  # type: ignore[attr-defined]  # an assignment, by `_named`


def _named(body: Iterable[ast.stmt], name: str) -> ast.stmt | None:
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name == name:
            return node
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == name for t in node.targets):
            return node
    return None


class _Writer(Phrases):
    """Writes the statements of one module. pausing: whether the loops of a function pause in every round."""

    pausing = False

    def function(self, node: ast.FunctionDef, name: str, keyword: str = "function ") -> str:
        """A function, or a method where there is no keyword."""
        arguments = [a for a in (*node.args.posonlyargs, *node.args.args) if a.arg != "self"] + node.args.kwonlyargs
        if node.args.vararg or node.args.kwarg:
            raise self.refused(node, "*")
        hidden = self.local
        own = {n.id for n in _inside(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        own |= {n.name for n in node.body if isinstance(n, ast.FunctionDef)}
        taken = {a.arg for a in arguments}
        self.local = self.local | own | taken
        defaults = [*([None] * (len(node.args.args) - len(node.args.defaults))), *node.args.defaults]
        defaults = [d for a, d in zip(node.args.args, defaults, strict=True) if a.arg != "self"]
        defaults += node.args.kw_defaults
        heads = [
            local_name(a.arg) + ("" if d is None else f" = {self.visit(d)}")
            for a, d in zip(arguments, defaults, strict=True)
        ]
        free = sorted(local_name(n) for n in own - taken)
        declared = f"let {', '.join(free)};\n" if free else ""
        star = (
            "*"
            if (self.pausing and keyword and name)
            or any(isinstance(n, (ast.Yield, ast.YieldFrom)) for n in _inside(node))
            else ""
        )
        body = self.body(node.body)
        self.local = hidden
        return (
            f"{keyword.rstrip() + star + ' ' if keyword else star}{name}({', '.join(heads)}) {{\n{declared}{body}\n}}"
        )

    def body(self, nodes: Iterable[ast.stmt]) -> str:
        """Statements one below the other, without texts that only explain."""
        return "\n".join(self.visit(node) for node in nodes if not _explains(node))

    def class_of(self, node: ast.ClassDef, name: str, made: type) -> str:
        """A class with its constructor, its properties and its methods."""
        if node.bases:
            raise self.refused(node, "base class")
        self.owner = made
        parts = [self.fields(made)] if dataclasses.is_dataclass(made) else []
        for item in node.body:
            if isinstance(item, ast.FunctionDef):
                parts.append(self.method(item))
            elif not (_explains(item) or isinstance(item, ast.AnnAssign)):
                raise self.refused(item, type(item).__name__)
        known = [f.name for f in dataclasses.fields(made)] if dataclasses.is_dataclass(made) else []
        return f"class {name} {{\n" + "\n".join(parts) + f"\n}}\n{name}.fields = {self.written(known, node)};"

    def fields(self, made: Any) -> str:
        """The constructor of a record."""
        heads = []
        for field in dataclasses.fields(made):
            if field.default is not dataclasses.MISSING:
                heads.append(f"{field.name} = {self.written(field.default, ast.Name(id=field.name))}")
            elif field.default_factory is not dataclasses.MISSING:
                empty = "py.dict([])" if field.default_factory is dict else "[]"
                heads.append(f"{field.name} = {empty}")
            else:
                heads.append(field.name)
        kept = " ".join(f"this.{f.name} = {f.name};" for f in dataclasses.fields(made))
        after = " this.__post_init__();" if hasattr(made, "__post_init__") else ""
        return f"constructor({', '.join(heads)}) {{ {kept}{after} }}"

    def method(self, node: ast.FunctionDef) -> str:
        """One method; what is read like a field stays so."""
        marks = [ast.unparse(d) for d in node.decorator_list]
        if any(mark not in ("property", "cached_property") for mark in marks):
            raise self.refused(node, marks[0])
        name = {"__init__": "constructor", "__str__": "toString"}.get(node.name, node.name)
        return self.function(node, f"get {name}" if marks else name, "")

    # Statements

    def visit_FunctionDef(self, node: ast.FunctionDef) -> str:
        """A function inside another."""
        return f"{local_name(node.name)} = {self.function(node, '', 'function')};"

    def visit_Return(self, node: ast.Return) -> str:
        """The end of a function."""
        return f"return {self.visit(node.value)};" if node.value else "return;"

    def visit_Expr(self, node: ast.Expr) -> str:
        """A call for what it does."""
        if isinstance(node.value, ast.Yield) and node.value.value:
            return f"yield {self.visit(node.value.value)};"
        return f"{self.visit(node.value)};"

    def visit_Assign(self, node: ast.Assign) -> str:
        """One value to one or several names."""
        value = self.visit(node.value)
        first, *others = node.targets
        if others:
            return " ".join(self.put(target, value) for target in node.targets)
        return self.put(first, value)

    def put(self, target: ast.expr, value: str) -> str:
        """A value to where it is kept."""
        if isinstance(target, ast.Subscript):
            return f"py.put({self.visit(target.value)}, {self.visit(target.slice)}, {value});"
        if isinstance(target, ast.Tuple):
            return f"{self.visit(target)} = py.list({value});"
        return f"{self.visit(target)} = {value};"

    def visit_AnnAssign(self, node: ast.AnnAssign) -> str:
        """A value with its type."""
        return self.put(node.target, self.visit(node.value)) if node.value else ""

    def visit_AugAssign(self, node: ast.AugAssign) -> str:
        """More of the same: lists grow, dictionaries are laid over, numbers are added."""
        target, value = self.visit(node.target), self.visit(node.value)
        if isinstance(node.op, ast.BitOr):
            return f"py.update({target}, {value});"
        if isinstance(node.op, ast.Add) and self.is_list(node.value):
            return f"py.extend({target}, {value});"
        whole = ast.BinOp(left=_loaded(node.target), op=node.op, right=node.value)
        return self.put(node.target, self.visit(ast.copy_location(whole, node)))

    def is_list(self, node: ast.expr) -> bool:
        """Whether an expression is a list by what can be seen."""
        if isinstance(node, ast.BinOp):
            return self.is_list(node.left)
        if isinstance(node, ast.Call):
            try:
                returned = inspect.signature(self.found(node.func)).return_annotation
            except (LookupError, TypeError, ValueError):
                return False
            return str(returned).startswith("list")
        return isinstance(node, (ast.List, ast.ListComp))

    def visit_If(self, node: ast.If) -> str:
        """A choice."""
        other = f" else {{\n{self.body(node.orelse)}\n}}" if node.orelse else ""
        return f"if ({self.test(node.test)}) {{\n{self.body(node.body)}\n}}{other}"

    def visit_While(self, node: ast.While) -> str:
        """A loop for as long as something holds."""
        if node.orelse:
            raise self.refused(node, "else")
        return f"while ({self.test(node.test)}) {{\n{self.body(node.body)}\n}}"

    def visit_For(self, node: ast.For) -> str:
        """A loop over members."""
        if node.orelse:
            raise self.refused(node, "else")
        pause = "\nyield;" if self.pausing else ""
        return (
            f"for ({self.visit(node.target)} of py.list({self.visit(node.iter)})) {{\n{self.body(node.body)}{pause}\n}}"
        )

    def visit_Break(self, node: ast.Break) -> str:
        """The end of a loop."""
        return "break;"

    def visit_Continue(self, node: ast.Continue) -> str:
        """The next round of a loop."""
        return "continue;"

    def visit_Raise(self, node: ast.Raise) -> str:
        """A refusal, with the library's own words."""
        if not isinstance(node.exc, ast.Call) or not ast.unparse(node.exc.func).endswith("Error"):
            raise self.refused(node, "raise")
        return f"throw new py.Refused({self.visit(node.exc.args[0])});"


def _inside(function: ast.FunctionDef) -> Iterable[ast.AST]:
    """All nodes of a function, those of functions inside it and of comprehensions left away."""
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, (ast.FunctionDef, ast.Lambda)):
            continue
        if isinstance(node, (ast.GeneratorExp, ast.ListComp, ast.SetComp, ast.DictComp)):
            waiting += [n for n in ast.walk(node) if isinstance(n, ast.NamedExpr)]
            continue
        waiting += list(ast.iter_child_nodes(node))


def _explains(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _loaded(target: ast.expr) -> ast.expr:
    """What an assignment writes to, as an expression that reads it."""
    found = ast.parse(ast.unparse(target), mode="eval").body
    return ast.copy_location(found, target)

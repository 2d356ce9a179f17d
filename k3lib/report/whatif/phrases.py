"""Expressions of Python as expressions of JavaScript: operators, containers, comprehensions and texts."""

from __future__ import annotations

import ast
import json

from k3lib.report.whatif.calls import Calls, local_name

OPERATORS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Pow: "**"}
COMPARED = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}


class Phrases(Calls):
    """Writes all expressions of one module."""

    # Operators

    def visit_BinOp(self, node: ast.BinOp) -> str:
        """Arithmetic; a list times a number is that many of it."""
        left, right = self.visit(node.left), self.visit(node.right)
        if (
            isinstance(node.op, ast.Add)
            and isinstance(node.left, ast.ListComp)
            and isinstance(node.right, ast.ListComp)
        ):
            return f"[...{left}, ...{right}]"
        if isinstance(node.op, ast.Mult) and isinstance(node.left, ast.List):
            return f"py.repeat({left}, {right})"
        if isinstance(node.op, ast.FloorDiv):
            return f"Math.floor({left} / {right})"
        if isinstance(node.op, ast.Mod):
            return f"py.mod({left}, {right})"
        if isinstance(node.op, ast.BitOr):
            return f"py.union({left}, {right})"
        if type(node.op) not in OPERATORS:
            raise self.refused(node, ast.unparse(node))
        return f"({left} {OPERATORS[type(node.op)]} {right})"

    def visit_UnaryOp(self, node: ast.UnaryOp) -> str:
        """A sign, or not."""
        if isinstance(node.op, ast.Not):
            return f"!{self.test(node.operand)}"
        if isinstance(node.op, ast.USub):
            return f"(-{self.visit(node.operand)})"
        raise self.refused(node, ast.unparse(node))

    def visit_BoolOp(self, node: ast.BoolOp) -> str:
        """The first value that decides, as in Python."""
        name = "py.and" if isinstance(node.op, ast.And) else "py.or"
        *front, last = node.values
        text: str = self.visit(last)
        for value in reversed(front):
            text = f"{name}({self.visit(value)}, () => {text})"
        return text

    def visit_Compare(self, node: ast.Compare) -> str:
        """One comparison or a chain of them, whose middle parts are asked for twice."""
        sides = [node.left, *node.comparators]
        parts = [self.compared(a, op, b) for a, op, b in zip(sides, node.ops, sides[1:], strict=False)]
        return f"({' && '.join(parts)})" if len(parts) > 1 else parts[0]

    def compared(self, left: ast.expr, op: ast.cmpop, right: ast.expr) -> str:
        """One comparison."""
        a, b = self.visit(left), self.visit(right)
        if isinstance(op, (ast.In, ast.NotIn)):
            return f"{'!' if isinstance(op, ast.NotIn) else ''}py.has({b}, {a})"
        if isinstance(op, (ast.Is, ast.IsNot)):
            return f"({a} {'===' if isinstance(op, ast.Is) else '!=='} {b})"
        if isinstance(op, (ast.Eq, ast.NotEq)):
            return f"{'!' if isinstance(op, ast.NotEq) else ''}py.equal({a}, {b})"
        return f"({a} {COMPARED[type(op)]} {b})"

    def visit_IfExp(self, node: ast.IfExp) -> str:
        """One of two values."""
        return f"({self.test(node.test)} ? {self.visit(node.body)} : {self.visit(node.orelse)})"

    # Containers

    def visit_List(self, node: ast.List | ast.Tuple) -> str:
        """An array."""
        return f"[{self.many(node.elts)}]"

    visit_Tuple = visit_List

    def visit_Set(self, node: ast.Set) -> str:
        """An array in which each member stands once."""
        return f"py.unique([{self.many(node.elts)}])"

    def visit_Starred(self, node: ast.Starred) -> str:
        """The members of an array in their places."""
        return f"...{self.visit(node.value)}"

    def visit_Dict(self, node: ast.Dict) -> str:
        """A map; parts that start with ** are laid over one another."""
        parts = []
        for key, value in zip(node.keys, node.values, strict=True):
            parts.append(f"...{self.visit(value)}" if key is None else f"[{self.visit(key)}, {self.visit(value)}]")
        return f"py.dict([{', '.join(parts)}])"

    def visit_Subscript(self, node: ast.Subscript) -> str:
        """A member, or a part of an array."""
        owner = self.visit(node.value)
        if isinstance(node.slice, ast.Slice):
            ends = (node.slice.lower, node.slice.upper, node.slice.step)
            return f"py.slice({owner}, {', '.join('null' if e is None else self.visit(e) for e in ends)})"
        return f"py.at({owner}, {self.visit(node.slice)})"

    def visit_GeneratorExp(self, node: ast.GeneratorExp | ast.ListComp | ast.SetComp | ast.DictComp) -> str:
        """A comprehension as an array, made at once; of a dictionary as a map."""
        names = {n.id for g in node.generators for n in ast.walk(g.target) if isinstance(n, ast.Name)}
        hidden, self.local = self.local, self.local | names
        whole = isinstance(node, ast.DictComp)
        text = f"[{self.visit(node.key)}, {self.visit(node.value)}]" if isinstance(node, ast.DictComp) else (
            self.visit(node.elt))  # fmt: skip
        for depth, part in enumerate(reversed(node.generators)):
            source = f"py.list({self.visit(part.iter)})"
            target, cut = self.target(part.target)
            source += cut
            for condition in part.ifs:
                source += f".filter(({target}) => {self.test(condition)})"
            kept = depth == 0 and part.ifs and text == target  # a filter makes a new array already
            text = source if kept else f"{source}.{'flatMap' if depth else 'map'}(({target}) => {text})"
        self.local = hidden
        return f"py.dict({text})" if whole else f"py.unique({text})" if isinstance(node, ast.SetComp) else text

    def target(self, node: ast.expr) -> tuple[str, str]:
        """What a comprehension names its members; and how they are cut first where the front of each is not wanted."""
        if isinstance(node, ast.Tuple) and ast.unparse(node.elts[0]) == "*_":
            return f"[{self.many(node.elts[1:])}]", f".map((whole) => whole.slice(-{len(node.elts) - 1}))"
        return str(self.visit(node)), ""

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp

    def visit_Lambda(self, node: ast.Lambda) -> str:
        """A function of one expression."""
        names = [a.arg for a in node.args.args]
        hidden, self.local = self.local, self.local | set(names)
        body = self.visit(node.body)
        self.local = hidden
        return f"(({', '.join(map(local_name, names))}) => {body})"

    def visit_NamedExpr(self, node: ast.NamedExpr) -> str:
        """A value that is given a name on the way."""
        return f"({self.visit(node.target)} = {self.visit(node.value)})"

    def visit_JoinedStr(self, node: ast.JoinedStr) -> str:
        """A text with values in it: the whole sentence stays together, so that it can be translated."""
        pattern = ""
        values: list[str] = []
        for part in node.values:
            if isinstance(part, ast.Constant):
                pattern += str(part.value)
            elif isinstance(part, ast.FormattedValue):
                pattern += f"{{{len(values)}}}"
                spec = "".join(str(v.value) for v in part.format_spec.values) if part.format_spec else ""  # type: ignore
                values.append(f"py.format({self.visit(part.value)}, {json.dumps(spec)})")
        return f"py.say(t({json.dumps(pattern)}), [{', '.join(values)}])"

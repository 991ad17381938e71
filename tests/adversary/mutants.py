"""Small changes to a module's source, one at a time, each of which some test should notice."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip
NAMES = {"min": "max", "max": "min", "any": "all", "all": "any", "minimum": "maximum", "maximum": "minimum",
         "argmin": "argmax", "argmax": "argmin", "floor": "ceil", "ceil": "floor"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change: where it is, what it says, and the whole source with it.

    Attributes
    ----------
    line : int
    text : str
        The line as it stands in the module, which says where the change is when lines move.
    change : str
        ``before -> after``, of the statement or expression that changed.
    source : str
    """

    line: int
    text: str
    change: str
    source: str


class _Places(ast.NodeVisitor):
    """Nodes that may be changed: none in docstrings, annotations, error messages, imports or decorators.

    Nor a ``strict=True``, which is there for what cannot occur.
    """

    def __init__(self) -> None:
        self.nodes: list[ast.AST] = []

    def visit(self, node: ast.AST) -> None:
        if isinstance(node, ast.Raise | ast.Import | ast.ImportFrom | ast.JoinedStr):
            return
        if isinstance(node, ast.AnnAssign):
            if node.value is not None:
                self.visit(node.value)
            return
        if isinstance(node, ast.keyword) and node.arg == "strict":
            return
        if isinstance(node, ast.ClassDef):
            for each in node.body:
                self.visit(each)
            return
        if isinstance(node, ast.FunctionDef):
            for each in [*node.args.defaults, *[d for d in node.args.kw_defaults if d is not None], *node.body]:
                self.visit(each)
            return
        self.nodes.append(node)
        self.generic_visit(node)


def _changes(node: ast.AST) -> Iterator[ast.AST]:
    """Other nodes that could stand in a node's place."""
    if isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARISONS:
        yield ast.Compare(node.left, [COMPARISONS[type(node.ops[0])](), *node.ops[1:]], node.comparators)
    elif isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC:
        yield ast.BinOp(node.left, ARITHMETIC[type(node.op)](), node.right)
    elif isinstance(node, ast.AugAssign) and type(node.op) in ARITHMETIC:
        yield ast.AugAssign(node.target, ARITHMETIC[type(node.op)](), node.value)
    elif isinstance(node, ast.BoolOp):
        yield ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub | ast.Invert):
        yield node.operand
    elif isinstance(node, ast.If | ast.IfExp | ast.While):
        negated = ast.UnaryOp(ast.Not(), node.test)
        fields = {name: getattr(node, name) for name in node._fields}
        yield type(node)(**{**fields, "test": negated})
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield ast.Constant(not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        yield ast.Constant(node.value + 1)
    elif isinstance(node, ast.Name) and node.id in NAMES and isinstance(node.ctx, ast.Load):
        yield ast.Name(NAMES[node.id], ast.Load())
    elif isinstance(node, ast.Attribute) and node.attr in NAMES and isinstance(node.ctx, ast.Load):
        yield ast.Attribute(node.value, NAMES[node.attr], ast.Load())
    elif isinstance(node, ast.Continue | ast.Break) or (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
    ):
        yield ast.Pass()


class _Replace(ast.NodeTransformer):
    def __init__(self, old: ast.AST, new: ast.AST) -> None:
        self.old, self.new = old, new

    def visit(self, node: ast.AST) -> ast.AST:
        return ast.copy_location(self.new, node) if node is self.old else self.generic_visit(node)


def _nodes(source: str) -> tuple[ast.Module, list[ast.AST]]:
    tree, places = ast.parse(source), _Places()
    places.visit(tree)
    return tree, places.nodes


def handles(source: str) -> list[tuple[int, int]]:
    """Every change of a module's source, as (number of the node, number of its change), in the order of the source."""
    _, nodes = _nodes(source)
    return [(number, which) for number, node in enumerate(nodes) for which, _ in enumerate(_changes(node))]


def mutant(source: str, handle: tuple[int, int]) -> Mutant:
    """The source with one of its changes; it is parsed and not run."""
    (tree, nodes), (number, which) = _nodes(source), handle
    old = nodes[number]
    new = list(_changes(old))[which]
    line, before = getattr(old, "lineno", 0), _short(old)
    changed = ast.fix_missing_locations(_Replace(old, new).visit(tree))
    text = source.splitlines()[line - 1].strip() if line else ""
    return Mutant(line, text, f"{before} -> {_short(new)}", ast.unparse(changed))


def mutants(source: str) -> list[Mutant]:
    """Every change of a small source."""
    return [mutant(source, handle) for handle in handles(source)]


def _short(node: ast.AST) -> str:
    """First line of a node's source."""
    return ast.unparse(ast.fix_missing_locations(node)).splitlines()[0][:100]

"""The files that decide what a table says: its script, and all of this project that it imports, however far away."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PLACES = (HERE, HERE.parent, ROOT / "frontends")
"""Where a module that a script names may be; of the engine see :func:`engine_digest`."""

PACKAGE, REGISTRY, COMMANDS = "copter_frontends", "copter_frontends.registry", "copter_frontends.cli"
POLICIES = ("baselines", "chronus", "hadar", "hare", "hops", "shards", "sia", "traffic")
"""Frontends that the registry names; a table depends on those that it runs, not on all that could be named."""
ENGINE = ("*.py", "*.pyx", "*.pxd", "*.h")


def sources(script: Path, frontends: Collection[str], places: Sequence[Path] = PLACES) -> list[Path]:
    """A script and the files that it imports from `places`, in the order of their paths.

    Imports anywhere in a file count, those within a function too. From the registry of policies only the packages in
    `frontends` are followed; what the script reaches in another way is followed whatever its name. What the command
    line's own modules import is not: scripts take messages and progress from there, and no figures.
    """
    found: set[Path] = set()
    named: set[str] = set()
    pending = [script]
    while pending:
        path = pending.pop()
        if path in found or not path.is_file():
            continue
        found.add(path)
        own = _name_of(path, places)
        package = own if path.name == "__init__.py" else own.rpartition(".")[0]
        for name in _imports(path.read_text(), package):
            if name not in named and not _left_out(own, name, frontends):
                named.add(name)
                pending += _files_of(name, places)
    return sorted(found)


@cache
def _imports(source: str, package: str) -> tuple[str, ...]:
    """Modules that a file of a package names; of ``from a import b`` both a and a.b, as b may be a module."""
    return tuple(_named(source, package))


def _named(source: str, package: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parts = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*parts, *([node.module] if node.module else [])])
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)


def _name_of(path: Path, places: Sequence[Path]) -> str:
    """The module that a file is."""
    under = min(
        (path.relative_to(place).parts for place in places if path.is_relative_to(place)),
        key=len,
        default=(path.name,),
    )
    name = ".".join(under).removesuffix(".py")
    return name.removesuffix(".__init__")


def _files_of(name: str, places: Sequence[Path]) -> Iterator[Path]:
    """The files that importing a module runs: its packages' and its own."""
    parts = name.split(".")
    for place in places:
        if not ((place / parts[0]).is_dir() or (place / f"{parts[0]}.py").is_file()):
            continue
        for count in range(1, len(parts) + 1):
            path = place.joinpath(*parts[:count])
            yield from (each for each in (path.with_suffix(".py"), path / "__init__.py") if each.is_file())


def _left_out(own: str, name: str, frontends: Collection[str]) -> bool:
    """Whether the registry names a policy there that the table does not run, or the command line names it."""
    if f"{own}.".startswith(f"{COMMANDS}."):
        return True
    if not f"{own}.".startswith(f"{REGISTRY}.") or not name.startswith(f"{PACKAGE}."):
        return False
    frontend = name.split(".")[1]
    return frontend in POLICIES and frontend not in frontends


@cache
def meaning_of(source: str) -> str:
    """A digest of what Python source does: without comments, docstrings, imports and layout.

    An import says where a name is from; the file that it names counts by itself.
    """
    tree = ast.parse(source)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [each for each in body if not _says_nothing(each)]  # type: ignore[attr-defined]
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest()


def _says_nothing(node: ast.AST) -> bool:
    """Whether a statement is an import, a string by itself, or the list of a module's public names."""
    if isinstance(node, ast.Assign) and [getattr(target, "id", "") for target in node.targets] == ["__all__"]:
        return True
    text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    return text or isinstance(node, (ast.Import, ast.ImportFrom))


def digest_of(paths: Iterable[Path], first: str = "") -> str:
    """A digest of files by what they mean; where they are does not count."""
    digest = hashlib.sha256(first.encode())
    for meaning in sorted(_of_file(path) for path in paths):
        digest.update(meaning.encode())
    return digest.hexdigest()[:16]


def _of_file(path: Path) -> str:
    return meaning_of(path.read_text()) if path.suffix == ".py" else hashlib.sha256(path.read_bytes()).hexdigest()


def engine_digest(engine: Path = ROOT / "copter") -> str:
    """A digest of the engine's sources, all as one: it could move any plan by a rounding or a tie."""
    files = sorted(path for pattern in ENGINE for path in engine.rglob(pattern))
    return digest_of(files)

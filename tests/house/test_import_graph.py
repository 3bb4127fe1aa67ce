"""The order of the stages: a module imports from earlier stages and its own package, and there are no import cycles."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import gralis

ROOT = Path(gralis.__file__).parent

#: Packages and top-level modules, from the first stage to the last. Those on one line do not import each other.
STAGES = (
    ("version", "errors"),
    ("notebook",),
    ("arrays",),
    ("checks", "registry"),
    ("laws",),
    ("kernels",),
    ("targets", "storage", "tables"),
    ("trees",),
    ("models",),
    ("features",),
    ("baselines",),
    ("problem",),
    ("rays",),
    ("ledger",),
    ("estimators",),
    ("plans",),
    ("evaluation",),
    ("certificates",),
    ("explainers",),
    ("options",),
    ("results",),
    ("run",),
    ("api",),
    ("views", "files"),
    ("report",),
    ("interop", "games", "text"),
    ("canonical",),
    ("methods",),
    ("faithfulness",),
    ("scales", "sobol"),
    ("many",),
    ("reading_room",),
    ("bench",),
    ("planted",),
    ("paper",),
    ("demo",),
    ("cli",),
    ("__init__", "__main__"),
)
RANK = {name: rank for rank, names in enumerate(STAGES) for name in names}

#: Calls from an earlier stage to a later one, each made inside a function. Five at most.
EXCEPTIONS = {
    ("certificates", "api"): "calibrate() runs an explanation to look at its gradients",
    ("results", "views"): "Explanation.plot, token_html and the notebook view draw the result",
    ("results", "report"): "Explanation.report writes the page",
    ("results", "files"): "Explanation.save writes the archive",
    ("results", "interop"): "Explanation.to_shap makes an object of shap",
}


def modules() -> dict[str, ast.Module]:
    """Every module of the package by its dotted name without `gralis.`; a package is named by its `__init__`."""
    found = {}
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts)] = ast.parse(path.read_text(encoding="utf-8"))
    return found


TREES = modules()


def resolve(dotted: str) -> str | None:
    """The module that an imported dotted name (without `gralis.`) lives in."""
    for name in (dotted, f"{dotted}.__init__", dotted.rpartition(".")[0], f"{dotted.rpartition('.')[0]}.__init__"):
        if name in TREES:
            return name
    return None


def imported(node: ast.AST) -> Iterator[str]:
    """The modules of gralis that an import statement names."""
    names: list[str] = []
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
        names = [f"{node.module}.{alias.name}" for alias in node.names]
    for name in names:
        if name == "gralis":
            yield "__init__"
        elif name.startswith("gralis."):
            module = resolve(name.removeprefix("gralis."))
            assert module is not None, f"import of {name}, which does not exist"
            yield module


def at_load(tree: ast.Module) -> Iterator[ast.AST]:
    """The nodes that run when the module is loaded: everything outside functions."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        children = ast.iter_child_nodes(node)
        waiting.extend(c for c in children if not isinstance(c, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda))


def edges(*, loading: bool) -> set[tuple[str, str]]:
    """(importer, imported), at load or anywhere."""
    found = set()
    for name, tree in TREES.items():
        nodes = at_load(tree) if loading else ast.walk(tree)
        found |= {(name, module) for node in nodes for module in imported(node) if module != name}
    return found


def stage(module: str) -> str:
    return module.split(".")[0]


def test_every_stage_has_a_rank() -> None:
    assert {stage(module) for module in TREES} == set(RANK)


def test_imports_go_from_later_to_earlier_stages() -> None:
    upward = {
        (importer, module)
        for importer, module in edges(loading=False)
        if stage(importer) != stage(module) and RANK[stage(module)] >= RANK[stage(importer)]
    }
    unlisted = {edge for edge in upward if (stage(edge[0]), stage(edge[1])) not in EXCEPTIONS}
    assert not unlisted


def test_exceptions_are_few_used_and_inside_functions() -> None:
    assert len(EXCEPTIONS) <= 5
    used = {(stage(a), stage(b)) for a, b in edges(loading=False)}
    assert set(EXCEPTIONS) <= used
    loaded = {(stage(a), stage(b)) for a, b in edges(loading=True)}
    assert not set(EXCEPTIONS) & loaded


def test_modules_import_in_no_circle() -> None:
    """Within a package too, and whether or not an import stands inside a function."""
    graph: dict[str, set[str]] = {module: set() for module in TREES}
    for importer, module in edges(loading=False):
        own_package = module == f"{stage(importer)}.__init__" and stage(importer) == stage(module)
        if (stage(importer), stage(module)) not in EXCEPTIONS and not own_package:
            graph[importer].add(module)
    done: set[str] = set()

    def visit(module: str, path: tuple[str, ...]) -> None:
        assert module not in path, " -> ".join([*path[path.index(module) :], module])
        if module not in done:
            for other in sorted(graph[module]):
                visit(other, (*path, module))
            done.add(module)

    for module in sorted(graph):
        visit(module, ())


def test_inner_modules_do_not_import_their_own_package() -> None:
    """`from gralis.plans import x` inside gralis.plans works only by luck of the order of imports."""
    wrong = {
        (importer, module)
        for importer, module in edges(loading=True)
        if module == f"{stage(importer)}.__init__" and "." in importer and not importer.endswith("__main__")
    }
    assert not wrong


def test_the_tree_is_two_levels_deep_and_its_top_is_small() -> None:
    assert max(module.count(".") for module in TREES) == 1
    assert len([module for module in TREES if "." not in module]) <= 12


def test_one_module_evaluates_the_adapted_model() -> None:
    """The adapters in `models` run the framework; outside them one module calls `value` and `value_and_gradient`.

    `paper.complexity` wraps a model to count its calls.
    """
    methods = {"value", "value_and_gradient", "values_and_gradients"}
    callers = {
        module
        for module, tree in TREES.items()
        if stage(module) != "models"
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in methods
    }
    assert callers == {"evaluation.calls", "paper.complexity"}

"""The architecture: names that are used once, one way to drive a method, and a tree that the design page shows."""

from __future__ import annotations

import ast
import importlib
from collections import Counter
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

import zerothresh as zt

ROOT = Path(zt.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))
MODULES = [path for path in FILES if path.name != "__init__.py"]


def code(folder: str = "") -> dict[str, str]:
    """The source of every file below a folder, by its path."""
    return {str(path.relative_to(ROOT)): path.read_text() for path in FILES if path.is_relative_to(ROOT / folder)}


@cache
def tree(text: str) -> ast.Module:
    """The syntax of a file, which several tests look at."""
    return ast.parse(text)


def test_no_two_modules_or_packages_have_one_name():
    names = Counter(path.stem for path in MODULES)
    names.update(path.parent.name for path in FILES if path.name == "__init__.py")
    assert [name for name, count in names.items() if count > 1] == []


def test_no_two_classes_have_one_name():
    nodes = (node for text in code().values() for node in ast.walk(tree(text)))
    names = Counter(node.name for node in nodes if isinstance(node, ast.ClassDef))
    assert [name for name, count in names.items() if count > 1] == []


@pytest.mark.parametrize("init", [path for path in FILES if path.name == "__init__.py"], ids=lambda p: p.parent.name)
def test_no_package_hides_a_module_behind_something_else_of_its_name(init):
    package = ".".join(("zerothresh", *init.parent.relative_to(ROOT).parts))
    inside = [path.stem for path in init.parent.glob("*.py") if path.stem != "__init__"]
    inside += [path.name for path in init.parent.iterdir() if (path / "__init__.py").exists()]
    shown = vars(importlib.import_module(package))
    hidden = [name for name in inside if name in shown and not isinstance(shown[name], ModuleType)]
    assert hidden == []


def test_the_top_level_has_few_names():
    assert len(zt.__all__) <= 44
    assert sorted(zt.__all__) == sorted(set(zt.__all__))
    assert all(hasattr(zt, name) for name in zt.__all__)


def test_nothing_asks_which_kind_of_method_it_has():
    kinds = {"Program", "Stepwise", "Replayed"}
    for path, text in code().items():
        calls = (node for node in ast.walk(tree(text)) if isinstance(node, ast.Call))
        asking = (call for call in calls if getattr(call.func, "id", "") in ("isinstance", "issubclass"))
        names = {node.id for call in asking for node in ast.walk(call) if isinstance(node, ast.Name)}
        names |= {node.attr for call in asking for node in ast.walk(call) if isinstance(node, ast.Attribute)}
        assert not names & kinds, path


@pytest.mark.parametrize("folder", ["methods", "session"])
def test_nothing_frozen_rewrites_itself(folder):
    assert [path for path, text in code(folder).items() if "object.__setattr__" in text] == []


def test_a_session_knows_nothing_of_files():
    files = {"os", "pathlib", "json", "shutil", "tempfile", "mmap"}
    for path, text in code("session").items():
        nodes = list(ast.walk(tree(text)))
        imported = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
        imported |= {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
        imported = {name.split(".")[0] for name in imported}
        called = {node.func.id for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
        assert not imported & files, path
        assert "open" not in called, path


# Coefficients of formulas that no decision depends on, by folder of methods and file.
FORMULAS_OF_AUTO = {
    "arms/row_learning.py": {4, 100},  # four blocks of points; per cent
    "findings.py": {3},  # a cube root
    "line_probe.py": {4},  # two steps to both sides
    "models/curves.py": {3, 6},  # cubic splines
    "models/gaussian_process.py": {3, 5, 15},  # the Matern kernel, and the asymptotic series of the normal tail
    "models/message_passing.py": {4, 8, 16, 32},  # halvings of the 64 bits of a word
    "models/noise_level.py": {10, 23},  # decimal digits; the bits of single precision
    "moves/corner_proposals.py": {6},  # random numbers of one proposal
    "moves/parabola_test.py": {3},  # a third difference
}
FORMULAS = {
    "auto": FORMULAS_OF_AUTO,
    "residual": {
        "jacobians/filtered_jacobian.py": {4},  # the squared half of a second difference
        "support_descent.py": {4},  # the same, by the fourth power of a length
    },
}
SETTINGS = "settings.py"  # how the names of files of named numbers end
PLAIN = {0, 0.5, 1, 2}  # plain arithmetic


def bare_numbers(module: ast.Module) -> set[float]:
    """Numbers in code that are neither plain nor an index nor the value of a class attribute."""
    skipped = [node.slice for node in ast.walk(module) if isinstance(node, ast.Subscript)]
    classes = (node for node in ast.walk(module) if isinstance(node, ast.ClassDef))
    skipped += [part for node in classes for part in node.body if isinstance(part, ast.AnnAssign)]
    within = {id(part) for node in skipped for part in ast.walk(node)}
    numbers = (node for node in ast.walk(module) if isinstance(node, ast.Constant) and type(node.value) in (int, float))
    return {node.value for node in numbers if id(node) not in within} - PLAIN


@pytest.mark.parametrize("name", FORMULAS)
def test_every_number_on_which_a_decision_depends_has_a_name(name):
    folder, formulas = ROOT / "methods" / name, FORMULAS[name]
    own = ("niht.py", "floating_point.py")
    paths = (path for path in sorted(folder.rglob("*.py")) if not path.name.endswith((SETTINGS, *own)))
    bare = {str(path.relative_to(folder)): bare_numbers(tree(path.read_text())) for path in paths}
    assert {path: numbers for path, numbers in bare.items() if numbers - formulas.get(path, set())} == {}
    assert [path for path in formulas if bare[path] != formulas[path]] == []


def test_no_file_of_auto_is_longer_than_250_lines():
    assert [path for path, text in code("methods/auto").items() if text.count("\n") > 250] == []

"""Every block of code, every command and every link in the documentation works."""

from __future__ import annotations

import json
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import tomllib
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from waiting import PATIENCE

from zerothresh.runs.journal import read as read_journal

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")] + sorted(
    ROOT.glob("docs/*.md")
)
pages = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)

# What a page claims in its comments and words, beyond running.
CLAIMS = {
    "README.md": """
assert result.support.tolist() == [3, 17, 29]
assert np.allclose(result.x[result.support], [0.8, 0.5, 0.3], atol=0.01)
assert result.nfev <= 55 and result.success and result.status is zt.Status.CONVERGED
assert result.fit.standard_errors.max() < 1e-6
alone = zt.minimize(lambda x: np.mean(residuals(x) ** 2), 40, 3, budget=4000, bounds=(0, None), seed=0, patience=500)
assert alone.trace.nfev[alone.trace.fun < 1e-4 * np.mean(residuals(np.zeros(40)) ** 2)][0] < 400
""",
    "guide.md": """
assert result.support.tolist() == [4, 11, 26] and result.success
assert np.array_equal(again.x, result.x) and again.trace == result.trace
assert patient.success and patient.nfev < 2000 and patient.support.tolist() == [4, 11, 26]
assert np.array_equal(by_instance.x, by_name.x) and by_instance.support.tolist() == [4, 11, 26]
assert median.feature_names_in_[median.coef_ != 0].tolist() == ["bmi", "s1", "s5"]
assert advice.probe.queries <= 400 and advised.support.tolist() == [4, 11, 26]
assert progress.nit == 3 and progress.nfev == 33
assert fitted.support.tolist() == masked.support.tolist() == [4, 11, 26] and fitted.residuals.shape == (200,)
assert robust.support.tolist() == weighted.support.tolist() == [4, 11, 26]
assert mixed.support.tolist() == [5, 12, 31] and np.allclose(mixed.x, goal, atol=1e-3)
assert limited.x.max() <= 0.45 and limited.support.tolist() == [5, 12, 31] and switches.support.tolist() == [5, 12]
assert np.isnan(masked.residuals).sum() == 20 and fitted.nfev <= 400
assert stopped.status is zt.Status.FAILED and stopped.nfev < 2000 and stopped.support.size <= 3
assert stopped.fun < loss(np.zeros(30))
""",
    "beyond-one-machine.md": """
if __name__ == "__main__":
    assert np.array_equal(result.x, alone.x) and result.support.tolist() == [4, 11, 26]
""",
    "compare.md": """
assert [row["runs"] for row in found.rows()] == [3, 3, 3] and found.rows()[0]["gap"] < 0.01
""",
    "runs.md": """
assert kept.success and kept.nfev <= 1000 and (kept.x == same.x).all() and kept.nfev == same.nfev
assert kept.nfev < more.nfev <= 3000 and more.fun < kept.fun
assert first.status is second.status is zt.Status.COST
assert first.success and first.spent <= 900 < second.spent <= 2000 and second.fun < first.fun
""",
    "practice.md": """
assert tolerant.loss_ <= np.mean(too_far(*(lambda d: (d.target, squares.predict(d.data)))(load_diabetes(as_frame=True))))
assert selector.n_fits_ <= 100 and selector.support_.sum() <= 4 and (selector.score_ > 0.95 or print(selector.score_))
assert 1 - model.loss_ >= roc_auc_score(y, X @ start[0]) and (model.coef_ != 0).sum() <= 3
assert set(mixed.support) == {1, 5} and mixed.nfev <= 60
""",
    "path.md": """
assert found.best_k == 3 and found.best.support.tolist() == [1, 4, 9]
assert found.success and (np.diff(found.fun) <= 0).all() and (found.bic.argmin(), found.nfev < 20_000) == (2, True)
assert more.nfev == some.nfev + 2 * 120 and more[6].success
""",
    "theory.md": """
assert zt.theory.szoht_k(d=1000, q=5000, s2=1000, k_star=1, kappa=1.0) == range(77, 500)
assert advice.probe.queries <= 400 and result.success and result.fun < loss(__import__("numpy").zeros(40))
""",
}


def blocks(page: Path, *languages: str) -> list[str]:
    """The fenced blocks of a page in these languages."""
    found = re.findall(r"^```(\w*)\n(.*?)^```$", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    return [body for language, body in found if language in languages]


def commands(page: Path) -> list[list[str]]:
    """The command lines of a page, as words."""
    lines = "".join(blocks(page, "sh", "console")).splitlines()
    return [words for line in lines if (words := shlex.split(line.removeprefix("$ "), comments=True))]


def ours(page: Path) -> list[list[str]]:
    """Those of our own command."""
    return [words for words in commands(page) if words[0] == "zerothresh"]


COMMANDS = [words for page in PAGES for words in commands(page)]
OURS = [words for page in PAGES for words in ours(page)]


def run(arguments: list[str], folder: Path) -> str:
    done = subprocess.run(
        arguments, cwd=folder, capture_output=True, text=True, timeout=PATIENCE, env={**os.environ, "MPLBACKEND": "agg"}
    )
    assert done.returncode == 0, f"{shlex.join(arguments)}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")], ids=lambda page: page.name)
def test_the_code_on_the_page_runs(page, tmp_path):
    # In a process of its own, so that what a page registers does not leak into other tests.
    script = tmp_path / "page.py"
    script.write_text("\n".join([*blocks(page, "python"), CLAIMS.get(page.name, "")]))
    run([sys.executable, "-W", "error", str(script)], tmp_path)


def test_claims_belong_to_pages_with_code():
    assert set(CLAIMS) <= {page.name for page in PAGES if blocks(page, "python")}


def test_the_pages_show_the_command():
    assert {words[1] for words in OURS} >= {"methods", "solve", "advise", "show", "export", "reproduce"}


# Experiments, attacks and a dozen runs; test_reproduce.py, test_attack_command.py and test_cli.py have smaller ones.
SLOW = {"attack.md", "command-line.md", "reproduction.md"}


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=[pytest.mark.slow] if page.name in SLOW else []) for page in PAGES if ours(page)],
    ids=lambda page: page.name,
)
def test_the_commands_on_the_page_run_one_after_the_other(page, tmp_path):
    shutil.copytree(ROOT / "examples", tmp_path / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    for words in ours(page):
        before = set(tmp_path.iterdir())
        shorter = ["--budget", "6000"] if words[1] == "reproduce" else []  # not the full minute
        out = run([str(Path(sys.executable).parent / "zerothresh"), *words[1:], *shorter], tmp_path)
        assert out.strip()
        if words[1] in ("solve", "show") and "--csv" not in words:
            assert "7 21 38 52" in out
        named = [
            value for option, value in pairwise(words) if option in ("--out", "--run", "--trace", "--best", "--plot")
        ]
        assert set(tmp_path.iterdir()) - before == {tmp_path / Path(name).parts[0] for name in named}
    if "export" in {words[1] for words in ours(page)}:
        assert np.flatnonzero(np.load(tmp_path / "best.npy")).tolist() == [7, 21, 38, 52]


def test_the_lines_of_a_journal_on_the_page_are_some(tmp_path):
    lines = re.findall(r"^[0-9a-f]{8} \{.*\}$", (ROOT / "docs" / "runs.md").read_text(), flags=re.MULTILINE)
    (tmp_path / "journal").write_text("".join(f"{line}\n" for line in lines))
    (found, table), _, torn = read_journal(tmp_path / "journal")
    assert (found.round, found.final, found.start, found.values.tolist(), torn) == (12, False, 7, [0.3125], False)
    assert (table.round, table.final, table.start, table.values.tolist()) == (0, False, 0, [[0.3125, 0.25, -0.5, 1.0]])


def test_the_files_of_a_run_folder_are_all_on_the_page(tmp_path):
    names = re.findall(r"^\| `([\w.-]+)` \|", (ROOT / "docs" / "runs.md").read_text(), flags=re.MULTILINE)
    patterns = [re.compile(re.escape(name).replace("R", r"\d+")) for name in names]
    command = shlex.split(
        "solve examples/knobs.py:loss --dim 60 -k 4 --components 20 --budget 900 --method szoht --set eta=0.1"
    )
    shutil.copytree(ROOT / "examples", tmp_path / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    run([str(Path(sys.executable).parent / "zerothresh"), *command, "--run", "a", "--out", "r.json"], tmp_path)
    left = [path.name for path in (tmp_path / "a").iterdir() if not any(p.fullmatch(path.name) for p in patterns)]
    assert not left


def test_all_other_commands_on_the_pages_exist():
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for words in COMMANDS:
        match words:
            case ["zerothresh", *_]:
                pass
            case ["make", target]:
                assert target in targets
            case ["pip", "install", "-e", "."]:
                pass
            case ["pip", "install", "-e", package]:
                assert re.fullmatch(r"\.\[(\w+)\]", package)[1] in extras
            case ["PYTHONPATH=examples", ".venv/bin/pytest", *_]:
                pass  # tests/test_own_method.py runs it
            case _:
                pytest.fail(f"nothing checks the command {shlex.join(words)!r}")


def test_make_run_and_make_test_come_first():
    first, second = commands(ROOT / "README.md")[:2]
    assert (first, second) == (["make", "run"], ["make", "test"])


def anchors(page: Path) -> set[str]:
    """The names of a page's headings, as links spell them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pages
def test_links_and_pictures_lead_somewhere(page):
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


@pages
def test_files_that_are_named_exist(page):
    for name in re.findall(r"`((?:examples|scripts|benchmarks|tests|docs|src)/[\w./]+|\.ci/run)`", page.read_text()):
        assert (ROOT / name).exists(), name


def test_the_table_of_methods_is_complete():
    import zerothresh as zt

    known = {name: method.__name__ for name, method in zt.methods.available().items()}
    text = (ROOT / "docs" / "methods.md").read_text()
    assert dict(re.findall(r"^\| `([a-z-]+)`(?:\\\*)? \| `(\w+)` \|", text, flags=re.MULTILINE)) == known


def test_the_page_of_methods_is_what_the_script_makes_of_the_code():
    run([sys.executable, str(ROOT / "scripts" / "make_methods_page.py"), "--check"], ROOT)


def test_the_map_of_files_is_complete():
    source = ROOT / "src" / "zerothresh"
    text = (ROOT / "docs" / "design.md").read_text()
    listed = subprocess.run(["git", "ls-files", "."], cwd=source, capture_output=True, text=True)
    files = listed.stdout.split() if listed.returncode == 0 else [path.name for path in source.glob("*.py")]
    parts = {name.split("/")[0] + "/" if "/" in name else name for name in files}
    missing = {part for part in parts if not part.startswith(("_", "py.")) and f"`{part}`" not in text}
    assert not missing, f"docs/design.md says nothing of {missing}: give each a line in its table of files"


def test_the_table_of_errata_is_that_of_the_library():
    from zerothresh import theory

    text = (ROOT / "docs" / "theory.md").read_text().replace("\\|", "|")
    keys = re.findall(r"^\| `([\w-]+)` \|", text, flags=re.MULTILINE)
    assert keys == [one.key for one in theory.ERRATA]
    for one in theory.ERRATA:
        assert f"| {one.where} |" in text
        assert all(words in text for words in (one.printed, one.wrong, one.used)), one.key


def test_the_measured_tables_are_those_of_the_file_beside_them(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    measured = json.loads((ROOT / "docs" / "theory.json").read_text())
    report = runpy.run_path(str(ROOT / "benchmarks" / "theory.py"))["report"]
    text = (ROOT / "docs" / "theory.md").read_text()
    for part, found in measured.items():
        assert "\n".join(report(part, found)) in text, f"run benchmarks/theory.py --redraw {part}"


def test_pictures_are_small():
    pictures = list((ROOT / "docs" / "pictures").iterdir())
    assert pictures
    assert all(picture.stat().st_size < 150_000 for picture in pictures)

"""The measured numbers of attacks in the documentation: that they are those of the data beside them."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"


# The benchmark.


@pytest.fixture
def benchmark(monkeypatch):
    """The module that writes the benchmark's numbers into the text."""
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    import attack_summary

    return attack_summary


def between(page, mark):
    _, text, _ = page.split(mark)
    return text.strip()


def test_the_text_on_attacks_agrees_with_the_tables_of_the_benchmark(benchmark):
    page, tables = (DOCS / "attack.md").read_text(), (DOCS / "attack-benchmark.md").read_text()
    measured = json.loads((DOCS / "attack-art.json").read_text())
    why = "run benchmarks/attack_summary.py"
    assert between(page, benchmark.MARK) == benchmark.summary(tables), why
    assert between(page, benchmark.ART_MARK) == benchmark.art_sentence(measured, tables), why


def test_the_numbers_of_the_text_are_in_the_rows_of_the_tables(benchmark):
    tables = (DOCS / "attack-benchmark.md").read_text()
    rows = benchmark.rows_of(tables, benchmark.FEW)
    assert len(rows) == sum(line.startswith(("| small | ", "| resnet8 | ")) for line in tables.splitlines()) - 20
    (row,) = (r for r in rows if (r.net, r.budget, r.attack) == ("small", 60_000, "VR-SZHT"))
    assert "| small | 60,000 | VR-SZHT | 2 | 0.20 | 0.55 | 0.50 | 0.50 | 0.438 [" in tables
    assert (row.rate, row.runs, row.behind) == (0.438, 2, False)
    assert {row.net for row in benchmark.rows_of(tables, benchmark.MANY)} == {"small", "resnet8"}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("| 0.438 [0.000, 1.000] |", "| 0.237 [0.000, 1.000] |"),  # the lowest of the paper's methods at 60,000
        ("| 0.954 [0.942, 0.965] |", "| 0.955 [0.942, 0.965] |"),  # best at 600, which ART is compared with too
        ("x 5.5 [4.4, 6.7]", "x 6.5 [4.4, 6.7]"),
        ("+0.054 [+0.036, +0.071] ahead", "+0.054 [-0.036, +0.071] **no clear difference**"),
        ("| resnet8 | 60,000 | **best** | 3 |", "| resnet8 | 60,000 | **best** | 2 |"),
    ],
)
def test_a_changed_table_changes_the_text(benchmark, old, new):
    tables = (DOCS / "attack-benchmark.md").read_text()
    assert old in tables
    assert benchmark.summary(tables.replace(old, new)) != benchmark.summary(tables)


def test_a_sentence_that_is_not_true_any_more_is_an_error(benchmark):
    tables = (DOCS / "attack-benchmark.md").read_text()
    with pytest.raises(ValueError, match="best is not the first at 600 queries on the net small"):
        benchmark.summary(tables.replace("| 0.954 [0.942, 0.965] |", "| 0.654 [0.642, 0.665] |"))
    with pytest.raises(ValueError, match="do not fool nearly all"):
        benchmark.summary(tables.replace("| 0.941 [0.919, 0.963] |", "| 0.641 [0.619, 0.663] |"))


# The paper's experiment.


@pytest.fixture(scope="module")
def script():
    return runpy.run_path(str(ROOT / "scripts" / "put_attacks.py"))


@pytest.fixture(scope="module")
def numbers(script):
    return json.loads(script["NUMBERS"].read_text())


def test_the_page_has_the_numbers_of_the_last_reproduction_of_the_attacks(script, numbers):
    assert between(script["PAGE"].read_text(), script["MARK"]) == script["section"](numbers)
    readme = (DOCS.parent / "README.md").read_text()
    assert between(readme, script["MARK"]) == script["short_table"](numbers["verdicts"])
    assert numbers["quick"] is False
    assert numbers["judging"]["600"] >= script["LEAST"]
    assert numbers["net"] == script["accuracy"](script["CARD"].read_text())
    assert [verdict["source"].split(",")[0] for verdict in numbers["verdicts"]] == ["paper"] * 4 + ["zerothresh"]


def test_the_pictures_of_the_attacks_are_there_and_small(script):
    section = script["PAGE"].read_text().split(script["MARK"])[1]
    pictures = [path for path in (DOCS / "pictures").glob("attack-*.png") if f"(pictures/{path.name})" in section]
    assert len(pictures) == 2 * len(script["CLASSES"])
    assert sum(path.stat().st_size for path in pictures) < 600_000


def test_the_verdicts_on_attacks_follow_from_the_cases_that_are_kept(numbers):
    cases = numbers["tables"]["cases"]
    for verdict in numbers["verdicts"]:
        mine = [case for case in cases if case["claim"] == verdict["claim"]]
        counts = [sum(case["says"] == answer for case in mine) for answer in ("yes", "no", "unclear")]
        assert verdict["cases"] == "{} yes, {} no, {} unclear".format(*counts)
        for case in mine:
            if case["says"] == "yes":
                assert float(case["low"]) >= 0
            elif verdict["claim"].startswith("In most classes"):
                assert float(case["low"]) <= 0
            elif case["says"] == "unclear":
                assert float(case["low"]) <= 0 <= float(case["high"])


def test_a_shortened_report_is_not_put_into_the_page(script, tmp_path):
    told = {"quick": True, "experiments": [], "judging": {"600": 5}}
    (tmp_path / "manifest.json").write_text(json.dumps(told))
    with pytest.raises(SystemExit, match="not a full reproduction"):
        script["numbers_of"](tmp_path)

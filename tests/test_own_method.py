"""A newcomer's method: one file, no change elsewhere, and it does what the others do."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

from waiting import PATIENCE

import zerothresh as zt

ROOT = Path(__file__).parents[1]
FILE = ROOT / "examples" / "own_method.py"
GUIDE = (ROOT / "CONTRIBUTING.md").read_text()


def run(arguments: list[str], folder: Path = ROOT) -> str:
    """In a process of its own, because importing the file registers the method."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    places = os.pathsep.join(filter(None, [str(FILE.parent), os.environ.get("PYTHONPATH")]))
    env = {**inherited, "PYTHONPATH": places, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(arguments, cwd=folder, capture_output=True, text=True, timeout=PATIENCE, env=env)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


def test_it_takes_one_short_file():
    assert len(FILE.read_text().splitlines()) <= 60


def test_the_guide_shows_the_file():
    start = GUIDE.index("```python\n") + len("```python\n")
    assert GUIDE[start : GUIDE.index("```\n", start)].strip() in FILE.read_text()


def test_it_runs_by_instance_by_name_and_in_ask_tell(tmp_path):
    script = tmp_path / "use.py"
    script.write_text("""
import numpy as np
import zerothresh as zt
from own_method import HeavyBall

assert zt.methods.available()["heavy-ball"] is HeavyBall
problem = zt.problems.quadratic(d=20, k_true=3, n=4, spread=0.1, condition=4, seed=1)
options = {"budget": 4000, "estimator": zt.Estimator(q=20, mu=1e-4), "seed": 3}
one = zt.minimize(problem, None, 5, method=HeavyBall(eta=0.5), **options)
two = zt.minimize(problem, None, 5, method="heavy-ball", options={"eta": 0.5}, **options)
opt = zt.Optimizer(20, 5, n=4, method=HeavyBall(eta=0.5), **options)
while not opt.done:
    batch = opt.ask()
    opt.tell(batch, problem.values(batch.points, batch.components))
three = opt.result()
best = problem.F(problem.minimum_on(np.flatnonzero(problem.centre.round(6))))
for result in (one, two, three):
    assert result.success and result.support.size <= 5
    assert result.fun - best < 1e-3 * (problem.F(np.zeros(20)) - best)
    assert np.array_equal(result.x_last, one.x_last) and result.trace == one.trace
assert one.trace.nfev.tolist() == [4 * 21 * step for step in range(1, one.nit + 1)]  # n (q + 1) calls per step
assert one.trace.nht.tolist() == list(range(1, one.nit + 1))
""")
    run([sys.executable, "-W", "error", str(script)], tmp_path)


def test_it_keeps_the_contract_by_the_command_of_the_guide():
    (line,) = [line for line in GUIDE.splitlines() if line.startswith("PYTHONPATH=")]
    variable, program, *arguments = shlex.split(line)
    assert (variable, program) == ("PYTHONPATH=examples", ".venv/bin/pytest")
    out = run([sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments])
    tests = (ROOT / "tests" / "test_contract.py").read_text().count("\n@methods\n")
    passed = int(out.split(" passed")[0].split()[-1])
    assert passed >= 7 * tests > 0  # each of them, most on all problems of the zoo
    assert "failed" not in out
    assert "skipped" not in out


def test_it_has_not_leaked_into_the_other_tests():
    assert "heavy-ball" not in zt.methods.available()

"""`zerothresh solve --run`, `show` and `export`: runs that survive, from the shell."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner
from waiting import PATIENCE, until

import zerothresh as zt
from zerothresh.cli.app import app
from zerothresh.cli.show_command import duration
from zerothresh.runs import RunError, snapshot
from zerothresh.runs.inspection import inspect, read_run
from zerothresh.runs.paths import JOURNAL, SNAPSHOT, numbered

BOX = """
import os, signal, time
from pathlib import Path
import numpy as np

goal = np.zeros(30)
goal[[3, 7, 9]] = 1, -2, 3

def loss(x):
    with open("ledger", "a") as file:
        file.write("call\\n")
    if Path("pause").exists():
        time.sleep(0.002)
    while Path("gate").exists() and (made := len(Path("ledger").read_text().split())) % 250 == 0:
        if Path(f"pass-{made}").exists():
            break
        time.sleep(0.01)
    if Path("die").exists() and len(Path("ledger").read_text().split()) == int(Path("die").read_text()):
        os.kill(os.getpid(), signal.SIGKILL)
    if Path("fail").exists():
        raise RuntimeError("the licence [server] is \\x1b[31mdown")
    if Path("nan").exists():
        return float("nan")
    return ((x - goal) ** 2).sum()

def other(x):
    return 0.0
"""

SOLVE = ["solve", "box:loss", "--dim", "30", "-k", "3", "--method", "szoht", "--set", "eta=0.1", "--seed", "1"]
RUN = [*SOLVE, "--budget", "600", "--run", "runs/a"]
COMMAND = [sys.executable, "-c", "from zerothresh.cli.app import main; main()"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A folder with an objective, as a user would have it."""
    (tmp_path / "box.py").write_text(BOX)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    yield tmp_path
    sys.modules.pop("box", None)


def run(*arguments: str, code: int = 0) -> Any:
    outcome = CliRunner().invoke(app, list(arguments))
    assert outcome.exit_code == code, outcome.output
    assert "Traceback (most recent" not in outcome.stdout
    return outcome


def words(text: str) -> str:
    return " ".join(text.split())


def refused(*arguments: str) -> str:
    """The one sentence of a refusal."""
    outcome = run(*arguments, code=2)
    assert outcome.stdout == ""
    assert outcome.stderr.count("\n") == 1
    assert outcome.stderr.startswith("zerothresh: ")
    return words(outcome.stderr)


def calls() -> int:
    return len(Path("ledger").read_text().split()) if Path("ledger").exists() else 0


def shown(run_: str = "runs/a") -> dict[str, Any]:
    told: dict[str, Any] = json.loads(run("show", run_, "--json").stdout)
    return told


def contents(path: str = "runs/a") -> dict[str, tuple[bytes, int]]:
    return {p.name: (p.read_bytes(), p.stat().st_mtime_ns) for p in Path(path).iterdir()}


def killed(at: int) -> None:
    """A run in a process of its own, killed in its at-th call."""
    Path("die").write_text(str(at))
    done = subprocess.run([*COMMAND, *RUN], capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    Path("die").unlink()


# Going on.


def test_the_same_command_goes_on_after_a_kill_and_says_so() -> None:
    run(*SOLVE, "--budget", "600", "--out", "whole.json", "--trace", "whole.csv")
    total = calls()
    Path("ledger").unlink()
    killed(200)
    outcome = run(*RUN, "--out", "r.json", "--trace", "t.csv")
    assert "continuing the run in runs/a after 199 calls" in outcome.stderr
    assert calls() == total + 1  # the call that died is made again
    whole, resumed = json.loads(Path("whole.json").read_text()), json.loads(Path("r.json").read_text())
    for key in ("x", "fun", "nfev", "nht", "nit", "message", "status"):
        assert whole[key] == resumed[key]
    assert resumed["run"] == "runs/a"
    assert Path("t.csv").read_text() == Path("whole.csv").read_text()


def test_a_new_run_is_announced_and_quiet_says_nothing() -> None:
    assert run(*RUN).stderr == "zerothresh: starting a new run in runs/a\n"
    assert run(*RUN, "--quiet").output == ""


def test_a_failure_leaves_a_run_that_the_same_command_takes_further() -> None:
    run(*RUN, "--max-time", "1e-9")
    Path("fail").touch()
    outcome = run(*RUN, "--out", "r.json", "--quiet", code=1)
    assert "the licence [server]" in outcome.stderr
    assert "to continue it, run the same command again" in outcome.stderr
    Path("fail").unlink()
    assert "to go on" not in run(*RUN, "--out", "r.json").stderr
    assert json.loads(Path("r.json").read_text())["success"]


def test_a_time_limit_is_a_success_that_tells_how_to_go_on() -> None:
    outcome = run(*RUN, "--max-time", "1e-9")
    assert "--max-time 1e-09 s have passed" in words(outcome.stdout)
    assert "to continue it, run the same command again" in outcome.stderr


def test_retries_timeout_and_nan_reach_the_engine() -> None:
    Path("fail").touch()
    run(*RUN, "--retries", "2", "--backoff", "0", code=1)
    first = calls()
    assert first >= 3
    Path("fail").unlink()
    Path("nan").touch()
    run(*RUN, "--on-nan", "retry", "--retries", "1", "--backoff", "0", code=1)
    second = calls()
    assert second >= first + 2
    Path("nan").unlink()
    Path("pause").touch()
    run(*RUN, "--timeout", "1e-4", code=1)
    Path("pause").unlink()
    told = shown()
    assert (told["failures"], told["status"]) == (second + 1, "FAILED")
    assert told["failed_calls"] in (second, second + 1)  # a call that no thread began within the timeout costs nothing
    assert [fault["error"].split(":")[0] for fault in told["last_failures"]][-2:] == ["BadValue", "TimeoutError"]
    assert run(*RUN, "--on-nan", "worst", "--fsync", "value").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--fsync", "always"], "--fsync must be one of 'value', 'batch', 'never'"),
        (["--on-nan", "skip"], "--on-nan must be one of"),
        (["--retries", "-1"], "retries must be at least 0"),
        (["--backoff", "-1"], "backoff must be a finite number of at least 0"),
        (["--timeout", "0"], "timeout must be a finite number above 0"),
        (["--max-time", "0"], "--max-time must be a finite number above 0"),
        (["--run", "box.py"], "box.py is not a folder"),
        (["--run", "."], "holds other files and no run.json"),
    ],
)
def test_bad_options_of_a_run_are_refused_before_the_first_call(arguments: list[str], sentence: str) -> None:
    assert sentence in refused(*SOLVE, "--budget", "600", "--quiet", *arguments)
    assert calls() == 0


def test_another_run_is_refused_with_the_difference() -> None:
    run(*RUN)
    made = calls()
    assert "seed = 1, not 2" in refused(*RUN, "--quiet", "--seed", "2")
    assert "problem = 'loss', not 'other'" in refused("solve", "box:other", *RUN[2:], "--quiet")
    assert "a budget may stay or grow" in refused(*RUN, "--quiet", "--budget", "500")
    assert calls() == made
    run(*RUN, "--budget", "900")
    assert calls() > made


def test_a_run_overwrites_its_own_files_and_no_others() -> None:
    files = ["--out", "r.json", "--trace", "t.csv", "--quiet"]
    run(*RUN, *files, "--max-time", "1e-9")
    run(*RUN, *files)
    assert json.loads(Path("r.json").read_text())["status"] == "BUDGET"
    written = Path("t.csv").read_text()
    assert "r.json exists already" in refused(*SOLVE, "--budget", "600", "--quiet", "--out", "r.json")
    assert "r.json exists already" in refused(*SOLVE, "--budget", "600", "--run", "runs/b", *files)
    shutil.copy("r.json", "kept.json")
    assert "kept.json exists already" in refused(*RUN, "--quiet", "--out", "kept.json")
    Path("t.csv").write_text(written + "# my own remark\n")
    assert "t.csv exists already" in refused(*RUN, *files)
    run(*RUN, *files, "--force")
    assert Path("t.csv").read_text() == written


# Looking.


def test_show_tells_everything_of_a_run_in_80_columns() -> None:
    Path("fail").touch()
    run(*RUN, code=1)
    text = run("show", "runs/a").stdout
    assert "\x1b" not in text  # a stranger's words cannot steer the terminal
    assert "stopped (FAILED): the objective raised RuntimeError" in words(text)
    assert "run the same command again" in words(text)
    assert "component 0: RuntimeError: the licence [server] is ?[31mdown" in words(text)
    Path("fail").unlink()
    run(*RUN)
    before = contents()
    outcome = run("show", "runs/a")
    assert contents() == before
    assert max(map(len, outcome.stdout.splitlines())) <= 80
    text = words(outcome.stdout)
    for piece in (
        "runs/a state ended: the budget is spent",
        "to continue, raise the budget",
        "method szoht, eta = 0.1, batch = 1",
        "q = 10, mu = 0.001",
        "loss, d = 30, n = 1, seed = 1",
        "of 600, ",
        "at the best point",
        "3 of at most 3 non-zeros: 3 7 9; changed",
        "sessions 2, none of them crashed or killed",
        "calls per second in the latest session",
        "failures 1, counted as 1 calls",
    ):
        assert piece in text, text


def test_show_counts_what_the_result_counts() -> None:
    run(*RUN, "--out", "r.json", "--max-time", "0.02")
    for more in ([], ["--budget", "700"]):
        run(*RUN, *more, "--out", "r.json")
        result, told = json.loads(Path("r.json").read_text()), shown()
        assert (told["calls"], told["steps"], told["nht"]) == (result["nfev"], result["nit"], result["nht"])
        assert (told["best_fun"], told["support"]) == (result["fun"], result["x"]["indices"])
        assert told["budget"] == result["budget"]
        assert told["seconds_left"] is None
        assert calls() == told["calls"]


def test_a_killed_run_is_a_crash_with_all_values_counted() -> None:
    killed(57)
    told = shown()
    assert (told["state"], told["calls"], told["sessions"], told["crashes"]) == ("crashed", 56, 1, 1)
    assert 0 < told["since_snapshot"] <= 56
    assert told["holder"] is None
    text = words(run("show", "runs/a").stdout)
    assert "crashed: the process was killed" in text
    assert "of these calls; the rows below do not show them yet" in text
    run(*RUN)
    told = shown()
    assert (told["state"], told["sessions"], told["crashes"]) == ("ended", 2, 1)


def test_a_folder_whose_first_call_never_came_can_be_shown() -> None:
    killed(1)
    told = shown()
    assert (told["state"], told["calls"], told["support"], told["best_fun"]) == ("crashed", 0, None, None)
    assert "no step yet" in run("show", "runs/a").stdout
    (Path("runs/a") / "sessions.jsonl").unlink()
    assert shown()["state"] == "new"
    for folder in ("x" * 300, "runs/none"):
        refused("show", folder)
    assert "has no snapshot yet" in refused("export", "runs/a", "--best", "b.npy")


def test_a_run_that_lost_its_sessions_is_not_taken_for_a_new_one() -> None:
    run(*RUN)
    (Path("runs/a") / "sessions.jsonl").write_text("not JSON")
    told = shown()
    assert (told["state"], told["status"], told["calls"] > 0) == ("stopped", None, True)
    text = words(run("show", "runs/a").stdout)
    assert "stopped: sessions.jsonl is missing or damaged" in text


def test_a_run_that_has_ended_is_not_announced_as_continued() -> None:
    run(*RUN)
    assert "the run in runs/a has already ended" in run(*RUN).stderr
    refusal = refused(*RUN, "--budget", "100")
    assert "continuing" not in refusal
    assert "continuing the run in runs/a after" in run(*RUN, "--budget", "700").stderr


def test_a_running_run_can_be_watched_and_is_not_disturbed() -> None:
    run(*SOLVE, "--budget", "1500", "--out", "whole.json", "--quiet")
    Path("ledger").unlink()
    Path("gate").touch()  # every 250 calls it waits for us
    command = [*COMMAND, *SOLVE, "--budget", "1500", "--run", "runs/a", "--quiet", "--out", "r.json"]
    counts = []
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            for stop in range(250, 1500, 250):
                until(lambda stop=stop: calls() == stop or process.poll() is not None)
                told = shown()
                assert (told["state"], told["calls"]) == ("running", stop - 1)
                assert told["holder"].startswith(f"process {process.pid} on ")
                assert told["seconds_left"] is None or told["seconds_left"] >= 0
                Path(f"pass-{stop}").touch()
                counts += [told["calls"], shown()["calls"], shown()["calls"]]  # while it goes on
            process.wait(PATIENCE)
        finally:
            process.kill()
        assert process.returncode == 0, process.stderr.read() if process.stderr else ""
    assert counts == sorted(counts)
    assert json.loads(Path("r.json").read_text())["x"] == json.loads(Path("whole.json").read_text())["x"]


def test_a_run_that_is_open_in_this_process_keeps_its_lock() -> None:
    with zt.Optimizer(5, 2, budget=100, method=zt.SZOHT(0.1), seed=0, run="runs/b") as opt:
        batch = opt.ask()
        opt.tell(batch[:3], [1.0, 2.0, 3.0])
        told = inspect("runs/b")
        assert (told.state, told.calls) == ("running", 3)
        code = (
            "import sys, zerothresh as zt; zt.Optimizer(5, 2, budget=100, method=zt.SZOHT(0.1), seed=0, run='runs/b')"
        )
        other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert "is being written by process" in other.stderr


def test_files_that_vanish_while_they_are_read_are_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    stop, errors, seen, rounds = threading.Event(), [], [], iter(range(10**6))

    def due(self: Any) -> bool:
        """Always; and now and then only after somebody has looked once more."""
        if next(rounds) % 50 == 49:
            looks = len(seen) + len(errors)
            until(lambda: len(seen) + len(errors) > looks)
        return True

    monkeypatch.setattr("zerothresh.runs.folder.Run.due", due)

    def watch() -> None:
        while not stop.is_set():
            if Path("runs/a/run.json").exists():
                try:
                    seen.append(read_run("runs/a"))
                except Exception as error:
                    errors.append(error)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        run(*RUN, "--budget", "2500")
    finally:
        stop.set()
        watcher.join()
    assert not errors
    assert len(seen) > 3
    made = [0 if s.meta is None else s.meta["nfev"] + s.values for s in seen]
    assert made == sorted(made)


def test_one_that_always_vanishes_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    run(*RUN)

    def gone(path: Path) -> Any:
        raise FileNotFoundError(2, "gone", str(path))

    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    monkeypatch.setattr("zerothresh.runs.snapshot.read", gone)
    assert "changed during each of 50 attempts to read it" in refused("show", "runs/a")


def test_a_broken_snapshot_falls_back_to_the_one_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("zerothresh.runs.folder.Run.due", lambda self: True)
    run(*RUN)
    good = shown()
    *_, (_, newest) = numbered(Path("runs/a"), SNAPSHOT)
    newest.write_bytes(newest.read_bytes()[:100])
    told = shown()
    assert len(told["broken"]) == 1
    assert told["calls"] == good["calls"]  # the journal since the one before has the rest
    assert told["since_snapshot"] > 0
    assert "damaged" in words(run("show", "runs/a").stdout)
    outcome = run("export", "runs/a", "--trace", "t.csv", "--best", "b.npy")
    assert f"{told['since_snapshot']:,} calls are newer than the snapshot" in outcome.stderr
    assert len(Path("t.csv").read_text().splitlines()) == told["steps"] + 1
    for _, path in numbered(Path("runs/a"), SNAPSHOT):
        path.write_bytes(b"junk")
    assert "no snapshot of runs/a can be read" in refused("show", "runs/a")
    assert "no snapshot of runs/a can be read" in refused("export", "runs/a", "--best", "c.npy")


def test_folders_that_are_no_runs_are_refused() -> None:
    Path("empty").mkdir()
    for command in (["show"], ["export", "--best", "b.npy"]):
        assert "the folder nowhere does not exist" in refused(*command, "nowhere")
        assert "empty is not a run folder, because it has no run.json" in refused(*command, "empty")
        assert "box.py is not a folder" in refused(*command, "box.py")
    assert sorted(os.listdir()) == ["box.py", "empty"]


@pytest.mark.parametrize(
    "change",
    [
        {"nfev": -1},
        {"nfev": "many"},
        {"trace": 7},
        {"trace": {"rows": 10**9, "bytes": 10**9, "changes": 0}},
        {"journal": [0, -5]},
        {"failed_calls": True},
        {"nit": 1 << 60},
    ],
)
def test_crafted_snapshots_are_refused_with_a_sentence_or_done_without(change: dict[str, Any]) -> None:
    run(*RUN)
    calls = inspect("runs/a").calls
    *_, (_, newest) = numbered(Path("runs/a"), SNAPSHOT)
    meta, arrays = snapshot.read(newest)
    snapshot.write(newest, {**meta, **change}, arrays)
    for command in (["show", "runs/a"], ["export", "runs/a", "--trace", "t.csv"]):
        outcome = CliRunner().invoke(app, command)
        assert outcome.exit_code in (0, 2)
        assert outcome.exception is None or isinstance(outcome.exception, SystemExit)
        assert "Traceback" not in outcome.stderr
    noticed = 0
    try:
        found = inspect("runs/a")
        assert found.calls == calls
        noticed += len(found.broken)
    except RunError:
        noticed += 1
    try:
        read_run("runs/a").trace()
    except RunError:
        noticed += 1
    assert noticed


def test_a_crafted_point_trace_or_link_is_refused() -> None:
    run(*RUN)
    *_, (_, newest) = numbered(Path("runs/a"), SNAPSHOT)
    good = newest.read_bytes()
    meta, arrays = snapshot.read(newest)
    for point in (np.zeros(7), np.zeros((30, 1)), np.full(30, np.nan), np.zeros(30, np.int64)):
        snapshot.write(newest, meta, {**arrays, "best_x": point})
        assert "has no valid point of d = 30 numbers" in refused("export", "runs/a", "--best", "b.npy")
    newest.write_bytes(good)
    trace = Path("runs/a/trace.csv")
    text = trace.read_text()
    for bad in (text[: len(text) // 2], "ü" * len(text), "1,2\n" * len(text), "a,b,c,d,e\n" * len(text)):
        trace.write_text(bad)
        assert "trace.csv" in refused("export", "runs/a", "--trace", "t.csv")
    trace.unlink()
    assert "trace.csv cannot be read" in refused("export", "runs/a", "--trace", "t.csv")
    trace.symlink_to(Path("box.py").resolve())
    assert "trace.csv is a link" in refused("export", "runs/a", "--trace", "t.csv")
    assert not Path("t.csv").exists()


def test_a_linked_journal_is_refused() -> None:
    killed(100)
    *_, (_, journal) = numbered(Path("runs/a"), JOURNAL)
    journal.rename("elsewhere")
    journal.symlink_to(Path("elsewhere").resolve())
    assert "is a link" in refused("show", "runs/a")


def test_durations_are_told_in_the_unit_that_fits() -> None:
    assert [duration(s) for s in (0.25, 40, 600, 9000, 1e6)] == ["0.25 s", "40 s", "10 min", "2.5 h", "11.57 days"]


# Exporting.


def test_export_gives_the_trace_and_the_best_point_of_the_result() -> None:
    run(*RUN, "--out", "r.json", "--trace", "t.csv")
    before = contents()
    outcome = run("export", "runs/a", "--trace", "x.csv", "--best", "b.npy")
    assert contents() == before
    assert "b.npy: 3 non-zeros in 30 coordinates" in outcome.stdout
    assert outcome.stderr == ""
    assert Path("x.csv").read_text() == Path("t.csv").read_text()
    result, best = json.loads(Path("r.json").read_text()), np.load("b.npy", allow_pickle=False)
    assert np.flatnonzero(best).tolist() == result["x"]["indices"]
    assert best[best != 0].tolist() == result["x"]["values"]
    run("export", "runs/a", "--trace", "x.json")
    rows = json.loads(Path("x.json").read_text())
    lines = Path("t.csv").read_text().splitlines()
    assert len(rows) == len(lines) - 1
    step, nfev, nht, fun, support = lines[-1].split(",")
    assert rows[-1] == {
        "step": int(step),
        "nfev": int(nfev),
        "nht": int(nht),
        "fun": float(fun) if fun else None,
        "support": [int(j) for j in support.split()],
    }


def test_an_export_names_at_least_one_file_that_can_be_written() -> None:
    run(*RUN)
    assert "name what to write" in refused("export", "runs/a")
    assert "--trace must end in .csv or .json" in refused("export", "runs/a", "--trace", "t.txt")
    assert "--best must end in .npy" in refused("export", "runs/a", "--best", "b.txt")
    assert "the folder none does not exist" in refused("export", "runs/a", "--best", "none/b.npy")
    Path("b.npy").write_text("mine")
    assert "b.npy exists already" in refused("export", "runs/a", "--best", "b.npy")
    assert Path("b.npy").read_text() == "mine"
    run("export", "runs/a", "--best", "b.npy", "--force")
    assert np.load("b.npy").shape == (30,)


def test_a_target_that_cannot_be_written_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    run(*RUN)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    assert "b.npy could not be written: No space left" in refused("export", "runs/a", "--best", "b.npy")
    assert not list(Path().glob(".*.part"))

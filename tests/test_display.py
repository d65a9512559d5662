"""What people see of a run: the line on a terminal, and the log in pipes and CI."""

from __future__ import annotations

import fcntl
import logging
import os
import re
import struct
import subprocess
import sys
import termios
import threading
from dataclasses import dataclass

import numpy as np
import pytest
from waiting import PATIENCE, until

import zerothresh as zt
from zerothresh.api import run_log
from zerothresh.api.display import Display
from zerothresh.api.pace import LEAST, WINDOW, Pace
from zerothresh.api.run_status import RunStatus
from zerothresh.cli import long_run_log

GOAL = np.zeros(20)
GOAL[[3, 11]] = 2.0, -1.0
ARGUMENTS = {"x0": 20, "k": 2, "budget": 300, "seed": 0}


def bowl(x):
    return float(((x - GOAL) ** 2).sum())


def lines(caplog):
    return [record.getMessage() for record in caplog.records if record.name == "zerothresh"]


# The pace.


def paced(*stretches):
    """Return a pace after stretches of (seconds, calls per second, stage), one note per second."""
    pace, now, calls = Pace(0.0, 0), 0.0, 0
    for seconds, rate, stage in stretches:
        for _ in range(seconds):
            now, calls = now + 1, calls + rate
            pace.note(now, calls, stage)
    return pace


def test_the_time_left_follows_the_pace_of_the_last_half_minute():
    pace = paced((600, 100, "a"), (int(WINDOW), 2, "a"))
    assert pace.rate == pytest.approx(2, rel=0.1)
    assert pace.left(60) == pytest.approx(30, rel=0.1)


def test_the_time_left_knows_the_pace_of_the_present_stage():
    pace = paced((20, 100, "diagnosis"), (5, LEAST, "local descent"))
    assert pace.rate == LEAST  # and not the mean over both
    assert paced((20, 100, "one stage"), (5, LEAST, "one stage")).rate > LEAST


def test_a_stage_that_has_hardly_begun_is_forecast_by_the_pace_before_it():
    assert paced((20, 100, "diagnosis"), (1, 4, "local descent")).rate == pytest.approx(2004 / 21)


def test_a_call_that_takes_long_makes_the_pace_fall_and_the_forecast_grow():
    pace = paced((30, 10, "a"), (25, 0, "a"))
    assert 1 < pace.rate < 10
    before = pace.left(100)
    pace.note(100.0, 300, "a")
    assert pace.left(100) > before


def test_nothing_is_forecast_before_a_value_arrives_and_for_unusable_times():
    assert paced((100, 0, "a")).left(1) is None
    assert paced((10, 1, "a")).left(10**12) is None


def test_calls_that_take_minutes_have_a_pace_too():
    pace = Pace(0.0, 7)
    for number in range(1, 20):
        pace.note(600.0 * number, 7 + number, "a")
    assert pace.rate == pytest.approx(1 / 600)


# The line.


STATUS = RunStatus("F 0.0123", 31_415, 100_000, 754.0, "local descent", 43, 50, 123.4, 612.0, 17, 4)


ASKED_FOR = ["F 0.0123", "31,415/100,000 calls", "local descent", "43/50 busy", "123/s", "10:12 left"]


@pytest.mark.parametrize("width", range(20, 160, 7))
def test_the_line_fits_into_every_terminal_and_keeps_what_matters_most(width):
    fields = STATUS.fields(width)
    bar = 8  # columns at least; its place is an empty text
    assert sum(len(field) or bar for field in fields) + 2 * (len(fields) - 1) <= width
    assert fields[0] == "F 0.0123"
    assert width < 30 or "31,415/100,000 calls" in fields
    assert width < 80 or all(field in fields or field.replace("/s", " calls/s") in fields for field in ASKED_FOR)


def test_eighty_columns_show_all_that_people_ask_for():
    assert [field for field in STATUS.fields(80) if field] == ASKED_FOR


@dataclass
class Busy:
    """An evaluator at work, as the display sees it."""

    outstanding: int
    width: int = 8
    chunk: int = 1


@pytest.mark.parametrize(("evaluator", "busy"), [(Busy(3), 3), (Busy(40, chunk=16), 3), (Busy(0), 0), (None, 0)])
def test_busy_workers_are_those_that_have_a_call(evaluator, busy):
    with zt.Optimizer(20, 2, budget=300, seed=0) as optimizer:
        status = Display(optimizer, False, evaluator).status()
        assert (status.busy, status.workers) == (busy, 1 if evaluator is None else 8)
        assert status.stage == "diagnosis"
        assert status.budget == 300


def test_max_time_ends_the_forecast():
    clock = iter(np.arange(0.0, 1000.0, 10.0))
    with zt.Optimizer(20, 2, budget=300, seed=0) as optimizer:
        display = Display(optimizer, False, max_time=40.0, time_now=lambda: float(next(clock)))
        batch = optimizer.ask()
        optimizer.tell(batch, [bowl(x) for x in batch.points])
        assert display.status().left == 30.0


def test_a_signal_that_draws_while_the_run_looks_does_not_wait_for_itself():
    with zt.Optimizer(20, 2, budget=300, seed=0) as optimizer:
        display = Display(optimizer, False)
        with display._lock:
            assert display.status().calls == 0


def test_the_name_of_a_stage_cannot_write_on_the_terminal():
    @dataclass(frozen=True)
    class Rude(zt.Program):
        def search(self, context):
            context.stage("\x1b[2Jgone")
            yield from context.values([context.theta0])

    with zt.Optimizer(20, 2, budget=300, method=Rude(), seed=0) as optimizer:
        assert Display(optimizer, False).status().stage == "?[2Jgone"


# The log.


def test_the_log_tells_the_start_the_stages_and_the_end(caplog):
    with caplog.at_level(logging.INFO, "zerothresh"):
        result = zt.minimize(bowl, **ARGUMENTS, workers=3)
    first, *stages, last = lines(caplog)
    assert first == "auto starts: 20 coordinates, at most 2 non-zeros, budget 300 calls, 3 workers, seed 0"
    assert stages[0] == "after 0 calls: diagnosis"
    assert len(stages) == len({name for _, name in result.stages})
    assert last.startswith(f"ended after {result.nfev} of 300 calls in ")
    assert last.endswith(result.message)


def test_a_run_that_goes_on_says_so_and_does_not_announce_the_stages_of_the_past(caplog, tmp_path):
    half = zt.minimize(bowl, **(ARGUMENTS | {"budget": 40}), run=tmp_path / "run", fsync="never")
    with caplog.at_level(logging.INFO, "zerothresh"):
        zt.minimize(bowl, **ARGUMENTS, run=tmp_path / "run", fsync="never")
    first, *stages, _ = lines(caplog)
    assert first.startswith(f"auto goes on after {half.nfev} calls")
    assert "after 0 calls: diagnosis" not in stages


def test_nothing_is_said_unless_somebody_listens(capfd, caplog):
    zt.minimize(bowl, **ARGUMENTS)
    with caplog.at_level(logging.INFO, "zerothresh"):
        zt.minimize(bowl, **ARGUMENTS, progress=False)
    assert lines(caplog) == []
    assert capfd.readouterr() == ("", "")
    assert not [thread for thread in threading.enumerate() if thread.name == "zerothresh-log"]


def test_progress_without_a_terminal_and_without_logging_is_log_lines_on_standard_error(capfd):
    zt.minimize(bowl, **ARGUMENTS, progress=True)
    out, err = capfd.readouterr()
    assert out == ""
    assert all(line.startswith("zerothresh: ") for line in err.splitlines())
    assert "auto starts" in err
    assert "\x1b" not in err


def test_the_log_goes_on_while_a_call_takes_long(caplog, monkeypatch):
    monkeypatch.setattr(run_log, "SHORTEST", 0.0)
    monkeypatch.setattr(run_log, "PULSE", 0.01)

    def slow(x):
        before = len(lines(caplog))
        until(lambda: len(lines(caplog)) > before + 1)
        return bowl(x)

    with caplog.at_level(logging.INFO, "zerothresh"):
        result = zt.minimize(slow, **(ARGUMENTS | {"budget": 12}), method=zt.FGZOHT(eta=0.1))
    assert result.nfev == 12
    told = [line for line in lines(caplog) if "0 of 12 calls" in line]
    assert "no value has arrived yet" in told[0]


def test_a_log_that_cannot_be_written_does_not_end_a_run():
    class Broken(logging.Handler):
        def emit(self, record):
            raise OSError(28, "No space left on device")

    logger, handler = logging.getLogger("zerothresh"), Broken()
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        logged = zt.minimize(bowl, **ARGUMENTS)
    finally:
        logger.removeHandler(handler)
        logger.setLevel(logging.NOTSET)
    silent = zt.minimize(bowl, **ARGUMENTS, progress=False)
    assert (logged.fun, logged.nfev, logged.x.tobytes()) == (silent.fun, silent.nfev, silent.x.tobytes())


# The command.


def heard(capsys, *messages):
    with long_run_log.long_run_log():
        for message in messages:
            logging.getLogger("zerothresh").info("%s", message)
    return capsys.readouterr().err


def test_the_command_logs_long_runs_only(capsys, monkeypatch):
    assert heard(capsys, "one", "two") == ""
    monkeypatch.setattr(long_run_log, "QUIET", 0.0)
    assert heard(capsys, "one", "two") == "zerothresh: one\nzerothresh: two\n"
    logger = logging.getLogger("zerothresh")
    assert (logger.handlers, logger.level, logger.propagate) == ([], logging.NOTSET, True)


def test_a_module_that_sets_up_logging_gets_the_lines_once(capsys, caplog, monkeypatch):
    monkeypatch.setattr(long_run_log, "QUIET", 0.0)
    with caplog.at_level(logging.INFO, "zerothresh"):
        assert heard(capsys, "one") == ""
    assert lines(caplog) == ["one"]


# The terminal.


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")
def test_the_line_on_a_terminal_of_80_columns_keeps_alive_while_calls_take_long(tmp_path):
    script = (
        "import pathlib, time\n"
        "import numpy as np, zerothresh as zt\n"
        "def slow(x):\n"
        "    while not pathlib.Path('go').exists():\n"
        "        time.sleep(0.01)\n"
        "    return float(((x - 1) ** 2).sum())\n"
        "print(zt.minimize(slow, 20, 2, budget=300, workers=4, seed=0).nfev, 'calls in the end')\n"
    )
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "NO_COLOR")}
    with subprocess.Popen(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=theirs,
        text=True,
        env={**environment, "TERM": "xterm-256color"},
    ) as process:
        os.close(theirs)
        shown = ""
        while True:
            try:
                piece = os.read(ours, 65536)
            except OSError:  # the other side has closed its end
                break
            if not piece:
                break
            shown += piece.decode()
            if "0:01 elapsed" in shown and "0:02 elapsed" in shown:  # no call has ended, and the line goes on
                (tmp_path / "go").touch()
        out, _ = process.communicate(timeout=PATIENCE)
    os.close(ours)
    assert process.returncode == 0, shown
    assert "calls in the end" in out
    drawn = [line for line in re.split(r"[\r\n]+", re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown)) if line]
    assert max(map(len, drawn)) <= 80
    waiting = next(line for line in drawn if "0:02 elapsed" in line)
    assert waiting.startswith("F ?")
    assert "0/300 calls  diagnosis" in waiting
    assert re.search(r"[1-4]/4 busy", waiting)
    assert re.search(r"^F \d.* \d+/300 calls .*\d/(s|min)  ", drawn[-1])

"""MPI workers: the bits of the serial run, through Open MPI's mpiexec."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys

import pytest
from test_processes import ROOT
from waiting import PATIENCE

PROGRAM = """
import numpy as np
from mpi4py.futures import MPIPoolExecutor
import zerothresh as zt
from far_objectives import f, go

if __name__ == "__main__":
    with MPIPoolExecutor() as pool:
        width = pool.num_workers
        found = go(f, workers=pool, run="run")
    alone, again = go(f, parallel=width), go(f, run="run")
    assert np.array_equal(found.x, alone.x) and found.trace == alone.trace
    assert found.nfev == alone.nfev == again.nfev
    print("width", width)
"""


def missing() -> str:
    """What is not there for these tests, or an empty text."""
    if shutil.which("mpiexec") is None:
        return "no mpiexec (make mpi installs Open MPI)"
    if importlib.util.find_spec("mpi4py") is None:
        return "no mpi4py (make mpi installs it)"
    return ""


@pytest.mark.slow
@pytest.mark.skipif(bool(missing()), reason=missing() or "complete")
def test_mpi_gives_the_bits_of_the_serial_run(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT / "tests")]),
        "OMPI_ALLOW_RUN_AS_ROOT": "1",  # in a container
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMPI_MCA_rmaps_base_oversubscribe": "1",  # three processes on any number of cores
    }
    command = ["mpiexec", "-n", "3", sys.executable, "-m", "mpi4py.futures", "program.py"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    assert "width 2" in done.stdout  # one of the three processes is the optimiser

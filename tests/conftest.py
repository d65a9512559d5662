"""Settings for all tests, and which of the many cases of the contract wait for `make test-all`."""

from __future__ import annotations

import os
import signal
from pathlib import Path

# One thread of linear algebra per process: with the threads of several processes on two cores, each waits for the others.
for library in ("OPENBLAS", "MKL", "OMP"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")

import pytest
from hypothesis import HealthCheck, settings
from zoo import BY_OTHERS

import zerothresh as zt
from zerothresh.methods.registry import YOUR_OWN, family_of

# No test fails because the machine is slow or busy.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")

# Run folders are synced to the disk, which is most of the time of their tests: keep the tests' folders in memory.
MEMORY = Path("/dev/shm")
if "PYTEST_DEBUG_TEMPROOT" not in os.environ and os.access(MEMORY, os.W_OK) and MEMORY.is_dir():
    os.environ["PYTEST_DEBUG_TEMPROOT"] = str(MEMORY)

# A shell that starts the tests in the background makes them ignore Ctrl-C, and processes that they start would too.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Every method meets every problem of the zoo and every kind of estimate, but not each of the 21 pairs of them; a method
# by other authors meets two problems. All cases are among the slow tests.
PAIRS = {
    "ridge": "default",
    "quadratic": "sphere, independent",
    "logistic": "central, supports",
    "non-smooth": "default",
    "one component": "sphere, independent",
    "translated": "central, supports",
    "permuted": "sphere, independent",
}
BY_OTHERS_ON = ("ridge", "translated")


def is_quick(item: pytest.Function) -> bool:
    """Whether a case of the contract is run every time."""
    params, case = item.callspec.params, item.callspec.id
    if family_of(zt.methods.available()[params["name"]]) == YOUR_OWN:
        return True  # a new method meets them all
    by_others = params["name"] in BY_OTHERS
    if "workers" in params:
        return params["workers"] == 2 or not by_others
    if "problem" not in params:
        return True
    if "estimator" in params:
        met = BY_OTHERS_ON if by_others else PAIRS
        return any(case.startswith(f"{PAIRS[problem]}-{problem}-") for problem in met)
    return not by_others or case.startswith("ridge-")


def shared_fixture(item: pytest.Item) -> str | None:
    """The name of a fixture that is made once for many tests, if the test uses one."""
    found = getattr(item, "_fixtureinfo", None)
    shared = [name for name, made in getattr(found, "name2fixturedefs", {}).items() if made[-1].scope == "module"]
    return shared[0] if shared else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.name == "test_contract.py" and isinstance(item, pytest.Function) and hasattr(item, "callspec"):
            if "name" in item.callspec.params and not is_quick(item):
                item.add_marker(pytest.mark.slow)
        name = shared_fixture(item)
        if name is not None:  # on one worker, so that the fixture is not made by each of them
            item.add_marker(pytest.mark.xdist_group(f"{item.path.name}: {name}"))

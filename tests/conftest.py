"""Which of the many cases of the contract wait for `make test-all`."""

from __future__ import annotations

import pytest
from zoo import RIVALS

# The rivals go through all of the contract with the slow tests; else on two problems, a kind of estimate each.
CHEAP = {"ridge": {"default"}, "translated": {"central, supports"}}


def is_cheap(item: pytest.Function) -> bool:
    """Whether a rival's case is run every time."""
    ids = item.callspec.id
    if "workers" in item.callspec.params:
        return item.callspec.params["workers"] == 2
    if "problem" not in item.callspec.params:
        return True
    kinds = next((kinds for problem, kinds in CHEAP.items() if problem in ids), None)
    if kinds is None:
        return False
    return any(kind in ids for kind in kinds) if "estimator" in item.callspec.params else "ridge" in ids


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.name == "test_contract.py" and isinstance(item, pytest.Function) and hasattr(item, "callspec"):
            if item.callspec.params.get("name") in RIVALS and not is_cheap(item):
                item.add_marker(pytest.mark.slow)

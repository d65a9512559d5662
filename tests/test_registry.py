"""The register of methods: families and order come from the classes, and what is no method is refused."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

import zerothresh as zt
from zerothresh.methods import registry
from zerothresh.methods.registry import FAMILIES, YOUR_OWN, available, family_of, make

LIBRARY = {name: method for name, method in available().items() if method.__module__.startswith("zerothresh.")}


@pytest.fixture(autouse=True)
def forget(monkeypatch):
    monkeypatch.setattr(registry, "_registered", dict(registry._registered))


def folder(method: type) -> str:
    return method.__module__.split(".")[2]


def test_the_list_is_in_the_order_of_the_families_and_the_default_comes_first():
    assert next(iter(LIBRARY)) == "auto"
    families = [family_of(method) for method in LIBRARY.values()]
    assert list(dict.fromkeys(families)) == [family for family in FAMILIES if family != YOUR_OWN]
    assert families == sorted(families, key=list(FAMILIES).index)


def test_each_method_of_the_library_has_a_family_that_fits_its_folder_and_a_place_of_its_own():
    taken = set()
    for name, method in LIBRARY.items():
        family = family_of(method)
        assert folder(method) == ("auto" if family == "parts of auto" else family), name
        place = (family, getattr(method, "order", None))
        assert place not in taken, name
        taken.add(place)
        assert ("topic" in vars(method)) == (family == "literature"), name


def test_methods_of_one_topic_stand_together():
    topics = [method.topic for method in LIBRARY.values() if family_of(method) == "literature"]
    seen = list(dict.fromkeys(topics))
    assert topics == sorted(topics, key=seen.index)


def test_every_method_of_the_library_is_a_name_of_zt_methods():
    assert all(getattr(zt.methods, method.__name__) is method for method in LIBRARY.values())
    assert {method.__name__ for method in LIBRARY.values()} <= set(zt.methods.__all__)


def test_only_a_methods_own_file_its_folder_and_its_test_name_it():
    source = Path(zt.__file__).parent / "methods"
    for place in (
        source / "registry.py",
        source / "__init__.py",
        source.parents[2] / "scripts" / "make_methods_page.py",
    ):
        text = place.read_text()
        named = [name for name in LIBRARY if f'"{name}"' in text and name != "auto"]
        assert not named, place


class Whole:
    """A method of three functions."""

    def init(self, theta): ...
    def plan(self, state, n, rng): ...
    def update(self, state, answers, H): ...


class Begins:
    """A method that starts its own search."""

    def begin(self, task): ...


@pytest.mark.parametrize("kind", [Whole, Begins])
def test_a_method_has_three_functions_or_begin(kind):
    method = type("Mine", (kind,), {})
    assert zt.register("mine")(method) is method
    assert list(available())[-1] == "mine"
    assert family_of(method) == YOUR_OWN
    instance = method()
    assert make(instance) is instance
    assert type(make("MINE")) is method


def test_what_is_no_method_is_refused():
    class Half:
        def init(self, theta): ...
        def update(self, state, answers, H): ...

    with pytest.raises(ValueError, match="'half' has no plan: a method has the three functions init, plan"):
        zt.register("half")(Half)
    with pytest.raises(ValueError, match="method must be a name"):
        make(Half())
    with pytest.raises(ValueError, match="'szoht' is taken by the method SZOHT"):
        zt.register("szoht")(Whole)


def test_your_own_methods_come_last_as_they_were_registered_also_if_they_derive_from_one_of_ours():
    @dataclass(frozen=True)
    class Derived(zt.SAGASZHT):
        """It inherits a family and an order, but it is not of the paper."""

    @dataclass(frozen=True)
    class Kin(Whole):
        """It has a hyper-parameter that is called family."""

        family: str = "tree"
        order: str = "first"

    for name, method in {"z-derived": Derived, "a-kin": Kin}.items():
        zt.register(name)(method)
        assert family_of(method) == YOUR_OWN
    assert list(available())[-2:] == ["z-derived", "a-kin"]


def test_a_missing_hyper_parameter_names_the_class_as_it_is_written():
    with pytest.raises(ValueError, match=r"method=zt\.methods\.ZORO\(eta=\.\.\.\)"):
        make("zoro")
    with pytest.raises(ValueError, match=r"method=zt\.SZOHT\(eta=\.\.\.\)"):
        make("szoht")

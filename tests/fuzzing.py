"""Random arguments, valid and invalid, and what must be true of every call that is made with them.

A call ends in a valid result, or in ``ValueError`` or ``TypeError`` with a sentence before the objective is called.
"""

from __future__ import annotations

import dis
import inspect
import threading
import traceback
import warnings
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from zoo import OF_VALUES

import zerothresh as zt
from zerothresh.basics import check
from zerothresh.methods.registry import family_of

PACKAGE = str(Path(zt.__file__).parent)
SHORTEST_SENTENCE = 20  # characters
LONGEST_SENTENCE = 2000

# The same examples every time, and no test fails because the machine is slow.
COMMON: dict[str, Any] = {
    "derandomize": True,
    "database": None,
    "deadline": None,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.filter_too_much],
}
QUICK = settings(max_examples=150, **COMMON)
THOROUGH = settings(max_examples=20_000, **COMMON)  # behind `make test-all`


# Junk: what nobody should pass, and some do.


class Unhelpful:
    """An object that raises whatever is asked of it."""

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError("this object does nothing for anybody")

    __repr__ = __str__ = __len__ = __iter__ = __bool__ = __float__ = __int__ = __index__ = __array__ = _refuse
    __eq__ = __lt__ = __le__ = __gt__ = __ge__ = __contains__ = __getitem__ = __fspath__ = _refuse
    __add__ = __radd__ = __mul__ = __rmul__ = __sub__ = __rsub__ = __format__ = _refuse
    __hash__ = None  # type: ignore[assignment]

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError("this object has no attributes for anybody")


class Lying:
    """An object that claims to be a number, an array, a sequence and a path, and is none."""

    shape = ()
    ndim = 0

    def __repr__(self) -> str:
        return "a lie" * 1000

    def __len__(self) -> int:
        return 2**40

    def __index__(self) -> int:
        return "three"  # type: ignore[return-value]

    __float__ = __fspath__ = __index__

    def __array__(self, *_: Any, **__: Any) -> Any:
        return "three"


NAN, INF = float("nan"), float("inf")
LOOP: list[Any] = []
LOOP.append(LOOP)
JUNK: tuple[Any, ...] = (
    None, NAN, INF, -INF, -1, 0, -0.0, 3, 1.5, 1e300, -1e-320, True, False, 1j, 2**63, 10**12, 10**30, -(10**30), 10**400, 10**5000,
    "", "abc", "3", "x" * 5000, "a\0b", b"", b"x", bytearray(b"ab"), Decimal("0.1"), Fraction(1, 3),
    (), [], {}, set(), {1}, {"a": 1}, {0: 1, 5: 2}, [None], ["a", "b"], [[1], [2, 3]], [1, [2, 3]], [1j, 2], [NAN, 1.0], [10**400], LOOP,
    object(), object, int, zt.Estimator, zt.SZOHT, len, print, lambda: 0, lambda *a: None, range(3), iter([1, 2]), Unhelpful(), Unhelpful, Lying(),
    Ellipsis, NotImplemented, ValueError("an error"), np.nan, np.int64(3), np.float32(2), np.uint8(2), np.float16(0.5), np.bool_(True),
    np.array(3), np.array(0.5), np.array([1, 2]), np.array([]), np.zeros((2, 2)), np.zeros((0, 3)), np.array([None, 1], dtype=object),
    np.array(["a", "b"]), np.array([1j]), np.array(["2020-01-01"], dtype="M8[D]"), np.ma.masked_array([1.0, 2.0], [True, False]),
    np.longdouble("1e4000") if np.finfo(np.longdouble).max > 1e308 else 1e308, np.dtype("f8"), Path("x"), threading.Lock(), np.zeros(3, dtype=[("a", "f8")]),
)  # fmt: skip


def text_of(value: Any) -> str:
    """How a failing example shows a value, whatever it is."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{text_of(key)}: {text_of(item)}" for key, item in value.items()) + "}"
    if callable(value) and hasattr(value, "__name__"):
        return str(value.__name__)
    try:
        text = repr(value)
    except Exception:
        return f"<{type(value).__name__}>"
    return text if len(text) < 200 else text[:200] + "..."


junk = st.sampled_from(JUNK)


# What a refusal is.


def complaint(error: BaseException) -> str | None:
    """Say what is wrong with the way in which a call was refused; None if nothing is."""
    if not isinstance(error, (ValueError, TypeError)):
        return f"{type(error).__name__} is neither ValueError nor TypeError"
    text = str(error)
    if not SHORTEST_SENTENCE <= len(text) <= LONGEST_SENTENCE or text.count(" ") < 2:
        return f"{type(error).__name__} has no sentence of a readable length"
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    assert last is not None
    code = last.tb_frame.f_code
    if not code.co_filename.startswith(PACKAGE):
        return f"the words are those of {code.co_filename}"
    if code.co_code[last.tb_lasti] != dis.opmap["RAISE_VARARGS"]:  # no `raise` of ours
        return f"the words are Python's own, for line {last.tb_lineno} of {code.co_filename}"
    return None


def check_refusal(error: BaseException) -> None:
    """Check that a call was refused as it should be."""
    wrong = complaint(error)
    if wrong is not None:
        raise AssertionError(f"{wrong}: {''.join(traceback.format_exception(error))[-3000:]}")


@contextmanager
def no_foreign_warnings() -> Iterator[None]:
    """Let the library's own warnings pass, and fail on all others, such as NumPy's of an overflow."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    foreign = [one for one in caught if not issubclass(one.category, UserWarning) or " " not in str(one.message)]
    assert not foreign, [f"{one.category.__name__}: {one.message} ({one.filename}:{one.lineno})" for one in foreign]


# Objectives.


def _squares(x: Any) -> Any:
    return float(((x - 1) ** 2).sum())


def _lattice(x: Any) -> float:
    """A value that looks random, but is always the same for the same point."""
    return zlib.crc32(x.tobytes()) % 1009 / 1009.0


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "squares": _squares,
    "constant": lambda x: 3.0,
    "zero": lambda x: 0.0,
    "linear": lambda x: float(x.sum()),
    "concave": lambda x: -float((x**2).sum()),
    "tiny": lambda x: 1e-300 * _squares(x),
    "huge": lambda x: 1e300 * _squares(x),
    "large": lambda x: 1e150 * _squares(x),
    "absolute": lambda x: float(np.abs(x - 1).sum()),
    "stairs": lambda x: float(np.floor(3 * x).sum()),
    "rounded": lambda x: round(_squares(x), 1),
    "float32": lambda x: np.float32(_squares(x)),
    "whole": lambda x: int(np.clip(_squares(x), -1e15, 1e15)),
    "exponential": lambda x: float(np.exp(np.clip(x, -500, 500)).sum()),
    "product": lambda x: float(np.prod(x - 1)),
    "root": lambda x: float(np.sqrt(np.abs(x - 1)).sum()),
    "largest": lambda x: float(x.max()),
    "waves": lambda x: float(np.sin(40 * x).sum()),
    "lattice": _lattice,
    "cliff": lambda x: 1e308 if x[0] > 0 else -1e308,
    "offset": lambda x: 1e8 + _squares(x),
}
# What a call may do instead of returning a number; each counts as one call.
ACCIDENTS: dict[str, Callable[[], Any]] = {
    "nan": lambda: NAN,
    "infinity": lambda: INF,
    "nothing": lambda: None,
    "text": lambda: "a number",
    "ragged": lambda: [[1], [2, 3]],
    "unhelpful": lambda: Unhelpful(),
    "very large": lambda: 10**400,
    "complex": lambda: 1j,
    "exception": lambda: 1 / 0,
    "exit": lambda: (_ for _ in ()).throw(SystemExit(3)),
}


class Counted:
    """An objective that counts its calls outside of the library, and notes whatever is wrong with its points."""

    def __init__(
        self, name: str, d: int, n: int | None, *, vectorized: bool = False, accident: str = "", at: int = 0
    ) -> None:
        self.name, self.d, self.n, self.vectorized = name, d, n, vectorized
        self.accident, self.at = accident, at
        self.function = FUNCTIONS[name]
        self.components = n or 1
        self.calls = 0
        self.went_wrong = False  # whether a value was not finite, or none at all
        self.complaints: list[str] = []
        self.low: Any = -np.inf
        self.high: Any = np.inf
        self._lock = threading.Lock()

    def component(self, x: Any, i: int) -> Any:
        """The value of component i, without counting."""
        with np.errstate(all="ignore"):
            value = self.function(x)
            return value if self.n is None else float(value) * (1 + i % 3)

    def F(self, x: Any) -> float:
        """The mean of all components."""
        return float(np.mean([float(self.component(x, i)) for i in range(self.n or 1)]))

    def evaluate(self, points: Any, components: Any) -> list[Any]:
        """The values at some points, all of which count as soon as they are asked for."""
        with self._lock:
            first = self.calls + 1
            self.calls += len(points)
        return [
            self._one(x, int(i), first + place) for place, (x, i) in enumerate(zip(points, components, strict=True))
        ]

    def _one(self, x: Any, i: int, number: int) -> Any:
        if x.shape != (self.d,) or not np.isfinite(x).all():
            self.complaints.append(f"called at {x}")
        elif (x < self.low).any() or (x > self.high).any():
            self.complaints.append(f"called at {x}, outside of the bounds")
        if not 0 <= i < self.components:
            self.complaints.append(f"called for component {i}")
        if self.accident and number == self.at:
            self.went_wrong = True
            return ACCIDENTS[self.accident]()
        value = self.component(x, i)
        self.went_wrong |= not np.isfinite(value)
        return value

    def form(self) -> Callable[..., Any]:
        """The function as `minimize` takes it."""
        if self.vectorized:
            return (lambda X: self.evaluate(X, [0] * len(X))) if self.n is None else self.evaluate
        if self.n is None:
            return lambda x: self.evaluate([x], [0])[0]
        return lambda x, i: self.evaluate([x], [i])[0]

    def __repr__(self) -> str:
        what = f", {self.accident} at call {self.at}" if self.accident else ""
        return f"<{self.name}, d = {self.d}, n = {self.n}{', vectorized' if self.vectorized else ''}{what}>"


# Calls.


@dataclass
class Call:
    """A call with random arguments."""

    objective: Counted
    x0: Any
    k: Any
    named: dict[str, Any]
    spoilt: set[str] = field(default_factory=set)  # the arguments that are junk

    def __repr__(self) -> str:
        return f"{self.objective!r} x0={text_of(self.x0)} k={text_of(self.k)} {text_of(self.named)} spoilt: {sorted(self.spoilt)}"

    def spoil(self, name: str, value: Any) -> None:
        """Put junk in the place of an argument."""
        self.spoilt.add(name)
        if name in ("x0", "k"):
            setattr(self, name, value)
        else:
            self.named[name] = value
        self._follow(name, value)

    def _follow(self, name: str, value: Any) -> None:
        """Let the objective be what an argument says that is junk elsewhere, but may be right in this place."""
        objective, number, flag = self.objective, check.whole(value), check.plain_scalar(value)
        if name == "x0" and number is not None and number >= 1:
            objective.d = number
        elif name == "n" and (value is None or (number is not None and number >= 1)):
            objective.components = number or 1
            if number is None or number <= MOST_CALLS:
                objective.n = number
        elif name == "vectorized" and isinstance(flag, bool):
            objective.vectorized = flag


METHODS = [name for name in OF_VALUES if family_of(zt.methods.available()[name]) != "your own"]
# More often than others: what is used most, and what has most to go wrong.
FREQUENT = ["auto", "auto", "auto", "index", "htp", "niht", "guided-saga", "fgzoht", "szoht", "vr-szht", "sarah-szht"]
MOST_CALLS = 1000  # of a run, whatever its budget is
SIZES = [0.1, 0.01, 1, 0.5, 1e-300, 1e300, 1e-9, 1e9, np.float32(0.25), np.array(0.125)]
WRONG_OPTIONS = [100, 0, -1, 1e-300, 1e300, "last", "random", "x", None, NAN, INF, 10**30]


@dataclass
class Argument:
    """The values that an argument may have, and others that may be wrong; junk is wrong for all."""

    fine: list[Any]
    odd: list[Any] = field(default_factory=list)
    one_in: int = 1  # how seldom the argument is given


def _arguments(objective: Counted, *, evaluated: bool) -> dict[str, Argument]:
    """All arguments by name, but those that `calls` makes itself."""
    d, n = objective.d, objective.n
    spike = np.eye(1, d, d // 2)[0]
    starts = [d, d, d, np.int64(d), np.zeros(d), np.ones(d, np.float32), np.ones(d, int), [1] * d, spike, -2 * spike]
    starts += [
        1e6 * spike,
        1e-9 * spike,
        1e100 * spike,
        np.full(d, -1e-300),
        np.full(d, -0.0),
        np.arange(d),
        list(range(d)),
    ]
    far = [1e155 * spike, np.full(d, 1e300), np.full(d, NAN), np.full(d, INF), np.zeros((d, 1)), np.array(["a"] * d)]
    far += [np.ma.masked_array(np.ones(d), [True] * d), [10**30] + [0] * (d - 1)]
    boxes = [
        (0, None),
        (-1, 1),
        (None, 0),
        (0, 0),
        (-INF, INF),
        (np.zeros(d), np.ones(d)),
        (0, 1e-320),
        (-1e308, 1e308),
    ]
    boxes += [(-1e-3, 1e-3), ([0] * d, None), (0, np.linspace(0, 1, d)), (-5, 0.5), (-(10**30), 1)]
    no_boxes = [
        (1, 2),
        (2, -2),
        (NAN, 1),
        (-np.ones(d + 1), 1),
        "ab",
        (1,),
        (0, 1, 2),
        ("-1", "1"),
        (1j, 1),
        (-1, 10**400),
    ]
    halves = [j // 2 for j in range(d)]
    prices = [lambda i: 1, lambda i: 0.5 + i, lambda i: np.float32(2)]
    bad_prices = [lambda i: NAN, lambda i: -1, lambda i: None, lambda i: 1 / 0, lambda: 1, lambda i: "a"]
    out = {
        "x0": Argument(starts, far),
        "k": Argument([1, *range(1, d + 1), np.int64(1)], [0, d + 1, 1.0]),
        "budget": Argument([60, 150, 150, 300, 600, np.int64(200), 10**30], [0, 1, 2, 12, 2.5, -5]),
        "n": Argument([n], [0, 1.0, 2**53 + 1, 2**63]),
        "seed": Argument([0, 1, 5, 2**31, 2**64, 2**128, np.int64(7), None], [-1, 2**1001, 1.0]),
        "estimator": Argument([None], [zt.Estimator(s2=d + 1), zt.Estimator(q=10**12), zt.Estimator(mu=1e-300)]),
        "bounds": Argument(boxes, no_boxes, 4),
        "include": Argument([[0], [d - 1], [0, 0], [], np.zeros(d, bool)], [[d], [-1], 0, [0.5], list(range(d)), np.ones(d, bool)], 6),
        "exclude": Argument([[d - 1], [], list(range(1, d))], [[0], [d], [-1], ["a"], list(range(d))], 6),
        "groups": Argument([list(range(d)), halves, [0] * d, [f"{j % 3}" for j in range(d)], [0.5] * d], [[0] * (d + 1), [NAN] * d], 5),
        "on_nan": Argument(["stop", "worst"], ["retry", "never"], 5),
        "on_error": Argument(["stop", "worst"], ["retry", "never"], 5),
        "cost": Argument(prices, bad_prices, 8),
        "monitor": Argument([objective.F], [lambda x: NAN, lambda x: None, lambda x: 1 / 0, lambda x: "a", lambda: 0], 6),
        "fsync": Argument(["batch", "value", "never"], ["always"], 8),
    }  # fmt: skip
    if evaluated:
        out |= {
            "workers": Argument([1, 2, 5, np.int64(2)], [0, 10**6, 1.0], 8),
            "chunk": Argument([None, 1, 3, 10**30], [0], 8),
            "retries": Argument([0, 1, 3], [-1], 6),
            "timeout": Argument([None, 60, 1e300, Fraction(99)], [0, -1, NAN], 12),
            "max_time": Argument([None, 60, 1e300, 1e-9], [0, -1, INF], 8),
            "callback": Argument([lambda progress: None, _stop, lambda progress: 1 / 0], [lambda: None, 3], 8),
            "vectorized": Argument([objective.vectorized], ["no", 1]),
            "progress": Argument([False], ["yes"]),
        }
    return out


def _stop(progress: Any) -> None:
    raise StopIteration("enough")


def _options(draw: Any, method: str) -> dict[str, Any]:
    """Hyper-parameters of a method: those that it needs, and sometimes others."""
    options: dict[str, Any] = {}
    for name, parameter in inspect.signature(zt.methods.available()[method]).parameters.items():
        default = parameter.default
        if default is parameter.empty:
            options[name] = draw(st.sampled_from(SIZES))
        elif draw(st.integers(0, 5)) == 0 and not isinstance(default, str):
            kind = bool if isinstance(default, bool) else type(default)
            options[name] = draw(
                st.sampled_from({bool: [True, False], float: [0.1, 0.5, 0.9], int: [1, 2, 3]}.get(kind, [default]))
            )
    return options


@st.composite
def calls(draw: Any, *, evaluated: bool = True) -> Call:
    """Arguments of `minimize`, or of `Optimizer` if the user evaluates: valid ones, of which some are then spoilt."""
    d = draw(st.sampled_from([1, 2, 3, 4, 6, 10, 25]))
    n = draw(st.sampled_from([None, None, 1, 2, 5]))
    vectorized = evaluated and draw(st.integers(0, 4)) == 0
    failing = evaluated and draw(st.integers(0, 7)) == 0
    accident = draw(st.sampled_from(sorted(ACCIDENTS))) if failing else ""
    at = draw(st.integers(1, 40)) if failing else 0
    name = draw(st.sampled_from(sorted(FUNCTIONS)))
    objective = Counted(name, d, n, vectorized=vectorized, accident=accident, at=at)
    method = draw(st.sampled_from(FREQUENT + METHODS))
    named: dict[str, Any] = {"method": method, "options": _options(draw, method)}
    arguments = _arguments(objective, evaluated=evaluated)
    for argument, values in arguments.items():
        if values.one_in == 1 or draw(st.integers(1, values.one_in)) == values.one_in:
            named[argument] = draw(st.sampled_from(values.fine))
    if draw(st.integers(0, 3)) == 0:
        named["estimator"] = draw(estimators(d))
    if "cost" in named and draw(st.booleans()):
        named["max_cost"] = draw(st.sampled_from([50, 150, 1e9]))
    if evaluated:
        named["backoff"] = 0
    call = Call(objective, named.pop("x0"), named.pop("k"), named)
    settle(call)
    for _ in range(draw(st.sampled_from([0, 0, 0, 1, 1, 2]))):
        _spoil(draw, call, arguments)
    limit_work(call)
    return call


def settle(call: Call) -> None:
    """Make arguments fit each other that are valid only by themselves."""
    named, d = call.named, call.objective.d
    groups = named.get("groups")
    call.k = min(int(call.k), d if groups is None else len(set(groups)))
    excluded = set() if "exclude" not in named else set(named["exclude"])
    if "include" in named and excluded & set(_places(named["include"]).tolist()):
        del named["exclude"]


def _spoil(draw: Any, call: Call, arguments: dict[str, Argument]) -> None:
    """Put something wrong in the place of one argument."""
    name = draw(st.sampled_from([*arguments, "method", "options", "max_cost", "an option"]))
    if name == "an option" and isinstance(call.named["options"], dict) and call.named["options"]:
        option = draw(st.sampled_from(sorted(call.named["options"])))
        call.spoil("options", {**call.named["options"], option: draw(st.one_of(st.sampled_from(WRONG_OPTIONS), junk))})
        return
    name = "options" if name == "an option" else name
    odd = arguments[name].odd if name in arguments else []
    call.spoil(name, draw(st.one_of(st.sampled_from(odd), junk)) if odd else draw(junk))


def limit_work(call: Call) -> None:
    """Let a run with a budget that it cannot spend end by its cost."""
    budget = check.whole(call.named["budget"])
    if budget is not None and budget > MOST_CALLS:
        if call.spoilt & {"cost", "max_cost"}:
            call.named["budget"] = MOST_CALLS
        else:
            call.named |= {"cost": lambda i: 1, "max_cost": MOST_CALLS}


@st.composite
def estimators(draw: Any, d: int) -> Any:
    """Estimators; settings that do not fit each other make the default one."""
    choices = {
        "q": [1, 2, 10, d, 100, np.int64(3)],
        "mu": [1e-3, 1e-8, 1, 1e-300, 1e139, 1e300],
        "difference": ["forward", "central"],
        "directions": ["orthogonal", "sphere", "gaussian", "coordinate", "rademacher"],
        "s2": [None, 1, d, d + 1],
        "shared": [True, False],
        "common": [True, False],
    }
    chosen = {name: draw(st.sampled_from(values)) for name, values in choices.items() if draw(st.booleans())}
    try:
        return zt.Estimator(**chosen)
    except ValueError:
        return zt.Estimator()


# What must be true.

# Statuses of runs whose objective did nothing wrong.
SOUND = {
    zt.Status[name]
    for name in ("BUDGET", "CALLBACK", "CONVERGED", "STOPPED", "TIME", "COST", "DIVERGED", "CALLBACK_FAILED")
}
UNSOUND = SOUND | {zt.Status[name] for name in ("FAILED", "BAD_VALUE")}


def check_result(call: Call, result: zt.Result) -> None:
    """Check a result against what was asked for, and against what was counted outside."""
    named, x = call.named, result.x
    assert not call.objective.complaints, call.objective.complaints
    assert result.nfev == call.objective.calls
    assert result.nfev <= int(named["budget"])
    assert result.status in (UNSOUND if call.objective.went_wrong else SOUND), f"{result.status!r}: {result.message}"
    found_nothing = "nothing better than the start was found" in result.message  # what auto promises to say
    assert result.success == (result.status.success and not found_nothing)
    assert len(result.message) >= SHORTEST_SENTENCE or result.status is zt.Status.STOPPED
    assert x.shape == (call.objective.d,)
    assert np.isfinite(x).all()
    assert np.array_equal(result.support, np.flatnonzero(x))
    assert len(result.trace) == result.nit
    assert len(result.trace.support) == result.nit
    check_feasible(call, result)
    check_value(call, result)


def check_feasible(call: Call, result: zt.Result) -> None:
    """Check that the result keeps the constraint: the bounds, and the support unless the method is dense."""
    named, x = call.named, result.x
    low, high = box_of(named.get("bounds"))
    assert (x >= low).all()
    assert (x <= high).all()
    if not getattr(result.method, "sparse", True):
        return
    exclude = named.get("exclude")
    assert not x[[] if exclude is None else _places(exclude)].any()
    used = np.flatnonzero(x)
    include = named.get("include")
    forced = [] if include is None else _places(include)
    places = np.union1d(used, np.asarray(forced, int)).astype(int)
    groups = named.get("groups")
    count = places.size if groups is None else np.unique(np.asarray(groups)[places]).size
    assert count <= int(call.k)


def _places(given: Any) -> Any:
    array = np.asarray(given)
    return np.flatnonzero(array) if array.dtype == bool else array.astype(int)


def box_of(bounds: Any) -> tuple[Any, Any]:
    """The bounds as numbers or arrays, if they are a pair."""
    if bounds is None:
        return -np.inf, np.inf
    low, high = bounds
    return -np.inf if low is None else check.array(low), np.inf if high is None else check.array(high)


def check_value(call: Call, result: zt.Result) -> None:
    """Check that F at the result is what the objective says, where the objective says it and the run knows it."""
    named = call.named
    if np.isnan(result.fun) or named.get("monitor") is not None or call.objective.went_wrong:
        return
    expected = call.objective.F(result.x)
    assert np.isclose(result.fun, expected, rtol=1e-9, atol=0) or not np.isfinite(expected)

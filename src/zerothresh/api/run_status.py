"""Where a run is, in words: one line for a terminal of any width, and one sentence for a log."""

from __future__ import annotations

from dataclasses import dataclass

GAP = 2  # columns between two fields of the line
SHORTEST_BAR, LONGEST_BAR = 8, 40  # columns of the bar; a shorter one shows nothing, and a longer one nothing more
LONGEST_STAGE = 24  # characters; a method of one's own may call its stages as it likes
WIDE = 100  # columns from which on nothing needs to be abbreviated
MINUTE, HOUR, DAY = 60, 3600, 86_400  # seconds
FEW = 10.0  # calls per second (or per minute), from which on no decimal is shown


@dataclass(frozen=True)
class RunStatus:
    """Where a run is.

    Attributes
    ----------
    best: the best F so far, as a text: "F 0.0123", "F ~0.01" (a running mean) or "F ?".
    calls, budget: calls made, and how many may be made.
    elapsed: seconds of this session.
    stage: what the calls are made for; "" if the method has no stages.
    busy, workers: the workers that have a call, and how many there are.
    rate: calls per second, or None.
    left: seconds that the rest of the budget takes, or None.
    steps: the number of hard thresholdings (#NHT).
    changes: how often the support has changed.
    """

    best: str
    calls: int
    budget: int
    elapsed: float
    stage: str = ""
    busy: int = 0
    workers: int = 1
    rate: float | None = None
    left: float | None = None
    steps: int = 0
    changes: int = 0

    def fields(self, width: int) -> list[str]:
        """Return the fields of the line that fit into so many columns, in the order in which they are shown.

        The less important ones are left out where they do not fit. An empty text is the place of the bar, which gets
        the columns that are left.
        """
        stage = self.stage if len(self.stage) <= LONGEST_STAGE else self.stage[: LONGEST_STAGE - 1] + "…"
        ending = f"{clock(self.left)} left" if self.left is not None else f"{clock(self.elapsed)} elapsed"
        ranked = {  # by the place in the line; the most important field comes first here
            0: self.best,
            2: f"{self.calls:,}/{self.budget:,} calls",
            8: ending,
            3: stage,
            4: f"{self.busy}/{self.workers} busy" if self.workers > 1 else "",
            5: "" if self.rate is None else speed(self.rate, " calls" if width >= WIDE else ""),
            1: " " * SHORTEST_BAR,
            7: f"{clock(self.elapsed)} elapsed" if self.left is not None else "",
            6: f"{self.steps:,} NHT",
            9: f"{self.changes:,} support changes",
        }
        kept, used = dict[int, str](), -GAP
        for place, text in ranked.items():
            if text and used + GAP + len(text) <= width:
                kept[place] = text.strip()
                used += GAP + len(text)
        return [kept[place] for place in sorted(kept)]

    def sentence(self) -> str:
        """Return the status for a log."""
        parts = [self.best, f"{self.calls:,} of {self.budget:,} calls"]
        if self.stage:
            parts.append(f"stage: {self.stage}")
        if self.workers > 1:
            parts.append(f"{self.busy} of {self.workers} workers busy")
        parts.append("no value has arrived yet" if self.rate is None else speed(self.rate))
        parts.append(f"{clock(self.elapsed)} elapsed")
        if self.left is not None:
            parts.append(f"about {clock(self.left)} left")
        return ", ".join(parts)


def speed(rate: float, what: str = " calls") -> str:
    """Return a number of calls per second as a text; slow calls are counted per minute or per hour.

    >>> speed(1234.5), speed(2.34), speed(0.5), speed(0.001, "")
    ('1,234 calls/s', '2.3 calls/s', '30 calls/min', '3.6/h')
    """
    for unit, seconds in (("s", 1), ("min", MINUTE), ("h", HOUR)):
        if rate * seconds >= 1 or unit == "h":
            break
    number = rate * seconds
    return f"{number:,.0f}{what}/{unit}" if number >= FEW else f"{number:.1f}{what}/{unit}"


def clock(seconds: float) -> str:
    """Return a time as a text.

    >>> clock(5), clock(125), clock(7325), clock(200_000)
    ('0:05', '2:05', '2:02:05', '2 d 7 h')
    """
    whole = int(seconds)
    if whole >= DAY:
        return f"{whole // DAY} d {whole % DAY // HOUR} h"
    minutes, rest = divmod(whole, MINUTE)
    if whole < HOUR:
        return f"{minutes}:{rest:02d}"
    return f"{minutes // MINUTE}:{minutes % MINUTE:02d}:{rest:02d}"

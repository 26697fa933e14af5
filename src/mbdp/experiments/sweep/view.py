"""The display of a sweep: one live table in a terminal, plain lines elsewhere."""

import sys
import time
from types import TracebackType

from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.table import Table

from mbdp.experiments.sweep.spec import PlannedRun
from mbdp.experiments.sweep.state import State, progress_of, state_of

REFRESH, REPORT = 1.0, 60.0  # seconds between two looks in a terminal, and between two lines elsewhere
MOST_ROWS = 40


class View:
    """Runs done, running and failed; of each that runs its env steps, its return and the time that is left."""

    def __init__(self, runs: list[PlannedRun], *, finished: int):
        self.total, self.done, self.errors = len(runs), finished, 0
        self.shown_at = time.monotonic()
        self.console = Console(highlight=False)
        self.live = Live(console=self.console, auto_refresh=False) if sys.stdout.isatty() else None

    def __enter__(self) -> "View":
        if self.live:
            self.live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.live:
            self.live.stop()

    def finished(self, run: PlannedRun) -> None:
        self.done += 1
        mean_return = progress_of(run)[1]
        self.say(f"finished  {run.name}" + (f", return {mean_return:.1f}" if mean_return is not None else ""))

    def failed(self, run: PlannedRun, error: str) -> None:
        self.errors += 1
        self.say(f"failed    {run.name}: {error}")

    def say(self, line: str) -> None:
        """Print a line, above the table if there is one."""
        if self.live:
            self.console.print(line, markup=False)
        else:
            print(line, flush=True)

    def show(self, running: list[PlannedRun], *, waiting: int) -> None:
        """Show how far the sweep is, not too often."""
        if time.monotonic() - self.shown_at < (REFRESH if self.live else REPORT):
            return
        self.shown_at = time.monotonic()
        counts = f"{self.done} of {self.total} done, {len(running)} running, {waiting} waiting, {self.errors} failed"
        states = [(run, State("running", *progress_of(run))) for run in running[:MOST_ROWS]]
        if self.live:
            self.live.update(state_table(states, title=counts), refresh=True)
            return
        print(counts, flush=True)
        for run, state in states:
            print("          " + "  ".join([run.name, *_cells(run, state)[1:]]).rstrip(), flush=True)


def print_status(runs: list[PlannedRun]) -> None:
    """The state of every run of a sweep, whoever carries it out."""
    states = [(run, state_of(run)) for run in runs]
    kinds = [state.kind for _, state in states]
    counts = ", ".join(f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds))
    # Wide enough for any name where nobody's window limits it.
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 200)
    console.print(state_table(states, title=f"{len(runs)} runs: {counts}"))


def state_table(states: list[tuple[PlannedRun, State]], title: str) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=None)
    for name, justify in (("run", "left"), ("", "left"), ("step", "right"), ("return", "right"), ("left", "right")):
        table.add_column(name, justify=justify, overflow="fold")  # type: ignore[arg-type]
    for run, state in states:
        table.add_row(escape(run.name), *_cells(run, state))
        if state.error:
            table.add_row(f"  {escape(state.error)}")
    return table


def _cells(run: PlannedRun, state: State) -> list[str]:
    mean_return = "" if state.mean_return is None else f"{state.mean_return:.1f}"
    left = "" if state.seconds_left is None else hours(state.seconds_left)
    return [state.kind, f"{state.step:,}/{run.steps:,}", mean_return, left]


def hours(seconds: float) -> str:
    """A duration as a person says it."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"

"""Episodes of several policies in parallel processes; results do not depend on the number of processes."""

import itertools
import math
import multiprocessing
import os
import pickle
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import Any

from mbdp.envs.tasks import EnvMaker
from mbdp.robustness.episodes import BatchPolicy, EpisodeResult, Job, Worlds, run_episodes
from mbdp.types import BadInput

Report = Callable[[int, int], None]  # episodes done, episodes in all
ATTEMPTS = 3  # to run what a killed process has left undone
REFRESH = 0.2  # seconds between two reports of progress
LEAST, MOST = 4, 256  # episodes that a process takes at a time, whatever the number of processes


def run_all(
    policies: Sequence[BatchPolicy],
    make: EnvMaker,
    jobs: Sequence[Job],
    batch: int,
    workers: int,
    report: Report,
) -> list[list[EpisodeResult]]:
    """The results of every job, for each policy: in this process, or in `workers` processes of their own."""
    if workers == 1:
        return _run_here(policies, make, jobs, batch, report)
    return _run_in_workers(policies, make, jobs, batch, report, workers)


def _run_here(
    policies: Sequence[BatchPolicy], make: EnvMaker, jobs: Sequence[Job], batch: int, report: Report
) -> list[list[EpisodeResult]]:
    total, done, worlds = len(policies) * len(jobs), itertools.count(1), Worlds(make)
    return [
        _in_order(
            [run_episodes(policy, worlds, chunk, batch, lambda: report(next(done), total)) for chunk in _chunks(jobs)]
        )
        for policy in policies
    ]


def _run_in_workers(
    policies: Sequence[BatchPolicy], make: EnvMaker, jobs: Sequence[Job], batch: int, report: Report, workers: int
) -> list[list[EpisodeResult]]:
    try:
        shipped = pickle.dumps((list(policies), make))
    except Exception as error:
        raise BadInput(f"the policy cannot be sent to other processes, so use one worker: {one_line(error)}") from error
    parts = list(itertools.product(range(len(policies)), _chunks(jobs)))
    counts = multiprocessing.RawArray("q", len(parts))  # episodes done; without a lock that might die locked
    results: dict[int, list[EpisodeResult]] = {}
    for attempt in range(ATTEMPTS):
        missing = {part: parts[part] for part in range(len(parts)) if part not in results}
        try:
            _run_parts(missing, results, shipped, counts, batch, report, workers)
            break
        except BrokenProcessPool as error:
            if attempt + 1 == ATTEMPTS or not sum(counts):
                reason = 'memory ran out, or a script lacks `if __name__ == "__main__":` around its calls'
                raise BadInput(f"a worker process ended before its work was done: {reason}") from error
            warnings.warn("a worker process was killed; the episodes it had not handed in are run again", stacklevel=4)
            counts[:] = [len(results.get(part, ())) for part in range(len(parts))]
    in_turn = [[results[part] for part, (i, _) in enumerate(parts) if i == policy] for policy in range(len(policies))]
    return [_in_order(chunks) for chunks in in_turn]


def _run_parts(
    parts: Mapping[int, tuple[int, Sequence[Job]]],
    results: dict[int, list[EpisodeResult]],
    shipped: bytes,
    counts: Any,
    batch: int,
    report: Report,
    workers: int,
) -> None:
    """Add the results of all parts, each a policy and its jobs; those that came before a failure stay."""
    context, others = multiprocessing.get_context("spawn"), set(multiprocessing.active_children())
    total = sum(counts[:]) + sum(len(chunk) for _, chunk in parts.values())
    pool = ProcessPoolExecutor(min(workers, len(parts)), context, _receive, (shipped, counts))
    try:
        with _one_thread_each():
            futures = {pool.submit(_run_part, part, *what, batch): part for part, what in parts.items()}
        running = set(futures)
        while running:
            done, running = wait(running, REFRESH, FIRST_COMPLETED)
            results |= {futures[future]: future.result() for future in done}
            report(sum(counts), total)
    except BaseException:
        # After Ctrl-C or an error nobody waits for the episodes that are under way.
        pool.shutdown(wait=False, cancel_futures=True)
        for process in set(multiprocessing.active_children()) - others:
            process.terminate()
        raise
    pool.shutdown()


def _chunks(jobs: Sequence[Job]) -> list[Sequence[Job]]:
    """Parts of equal work, each with jobs from all over the grid, and four or a multiple if there are enough jobs."""
    count = max(1, min(len(jobs) // LEAST, 4 * math.ceil(len(jobs) / (4 * MOST))))
    return [jobs[start::count] for start in range(count)]


def _in_order(chunks: Sequence[Sequence[EpisodeResult]]) -> list[EpisodeResult]:
    """The results of all chunks, in the order that the jobs were in."""
    ordered = list(itertools.chain(*chunks))
    for start, chunk in enumerate(chunks):
        ordered[start :: len(chunks)] = chunk
    return ordered


# What a worker process was given at its start. Environments are never sent: a pickled one comes out nominal.
_received: list[Any] = []


def _receive(shipped: bytes, counts: Any) -> None:
    policies, make = pickle.loads(shipped)  # bytes that the parent process has just made, never a file's
    _received[:] = policies, Worlds(make), counts


def _run_part(part: int, policy: int, chunk: Sequence[Job], batch: int) -> list[EpisodeResult]:
    policies, worlds, counts = _received

    def finished() -> None:
        counts[part] += 1

    return run_episodes(policies[policy], worlds, chunk, batch, finished)


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Processes started in this block compute on one thread, since there is one of them for every core."""
    names = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(dict.fromkeys(names, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def one_line(error: BaseException) -> str:
    """What went wrong, as part of a message that must stay on one line."""
    return str(error) if isinstance(error, BadInput) else " ".join(f"{type(error).__name__}: {error}".split())

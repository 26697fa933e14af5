"""Episodes of several policies, shared among processes; the numbers do not depend on how many."""

import itertools
import multiprocessing
import os
import pickle
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import Any

from mbdp.lanes import BatchPolicy, EnvMaker, Job, Outcome, run_episodes
from mbdp.types import BadInput

Progress = Callable[[int, int], None]  # episodes done, episodes in all
CHUNK = 64  # episodes that a process takes at a time, whatever the number of processes


def run_all(
    policies: Sequence[BatchPolicy],
    make: EnvMaker,
    jobs: Sequence[Job],
    batch: int,
    workers: int,
    progress: Progress,
) -> list[list[Outcome]]:
    """The outcomes of every job, for each policy: in this process, or in `workers` processes of their own."""
    if workers == 1:
        return _run_here(policies, make, jobs, batch, progress)
    return _run_in_workers(policies, make, jobs, batch, progress, workers)


def _run_here(
    policies: Sequence[BatchPolicy], make: EnvMaker, jobs: Sequence[Job], batch: int, progress: Progress
) -> list[list[Outcome]]:
    total, done, envs = len(policies) * len(jobs), itertools.count(1), list[Any]()
    return [
        [
            outcome
            for chunk in _chunks(jobs)
            for outcome in run_episodes(policy, make, chunk, batch, envs, lambda: progress(next(done), total))
        ]
        for policy in policies
    ]


def _run_in_workers(
    policies: Sequence[BatchPolicy], make: EnvMaker, jobs: Sequence[Job], batch: int, progress: Progress, workers: int
) -> list[list[Outcome]]:
    try:
        shipped = pickle.dumps((list(policies), make))
    except Exception as error:
        raise BadInput(f"the policy cannot be sent to other processes, so use one worker: {one_line(error)}") from error
    outcomes: dict[tuple[int, int], list[Outcome]] = {}
    parts = list(itertools.product(range(len(policies)), enumerate(_chunks(jobs))))
    context, others = multiprocessing.get_context("spawn"), set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(min(workers, len(parts)), context, _receive, (shipped,))
    try:
        with _one_thread_each():
            futures = {pool.submit(_run_chunk, i, chunk, batch): (i, number) for i, (number, chunk) in parts}
        for future in as_completed(futures):
            outcomes[futures[future]] = future.result()
            progress(sum(map(len, outcomes.values())), len(policies) * len(jobs))
    except BrokenProcessPool as error:
        reason = 'memory ran out, or a script lacks `if __name__ == "__main__":` around its calls'
        raise BadInput(f"a worker process ended before its work was done: {reason}") from error
    except BaseException:
        # After Ctrl-C or an error nobody waits for the episodes that are under way.
        pool.shutdown(wait=False, cancel_futures=True)
        for process in set(multiprocessing.active_children()) - others:
            process.terminate()
        raise
    pool.shutdown()
    return [[o for key in sorted(outcomes) if key[0] == i for o in outcomes[key]] for i in range(len(policies))]


def _chunks(jobs: Sequence[Job]) -> list[Sequence[Job]]:
    return [jobs[start : start + CHUNK] for start in range(0, len(jobs), CHUNK)]


# What a worker process was given at its start. Environments are never sent: a pickled one comes out nominal.
_received: list[Any] = []


def _receive(shipped: bytes) -> None:
    _received[:] = *pickle.loads(shipped), []


def _run_chunk(policy: int, chunk: Sequence[Job], batch: int) -> list[Outcome]:
    policies, make, envs = _received
    return run_episodes(policies[policy], make, chunk, batch, envs)


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

"""Runs on a Ray cluster: one task per run, which starts the same process that the local pool starts."""

import logging
import signal
import socket
import subprocess
import sys
import time
from types import ModuleType
from typing import Any

from mbdp.experiments.sweep.process import exit_code, stop
from mbdp.experiments.sweep.spec import PlannedRun
from mbdp.experiments.sweep.state import note_error
from mbdp.experiments.sweep.worker import start_run
from mbdp.types import BadInput

RETRIES = 20  # of a task whose worker or node has died
HEALTH_CHECK = 30.0  # seconds until an address counts as not Ray's
PATIENCE = 60.0  # seconds that interrupted runs have to write their checkpoints


class Cluster:
    """The machines of a Ray cluster, which see the runs' folders under the same path and have mbdp installed."""

    def __init__(self, address: str):
        self.ray = _connected(address)
        # A task that has lost its worker or node is started anew by Ray, and its run goes on from the last checkpoint.
        # One core is what a run is kept on.
        self.task = self.ray.remote(num_cpus=1, max_retries=RETRIES)(carry_out)

    def slots(self) -> int:
        """Twice the cores: a queue as long as the cluster is large shows an autoscaler that more would be used."""
        return max(2, 2 * int(self.ray.cluster_resources().get("CPU", 0)))

    def start(self, run: PlannedRun) -> Any:
        return run, self.task.options(name=run.name).remote(run)

    def exit_code(self, job: Any) -> int | None:
        run, reference = job
        if not self.ray.wait([reference], timeout=0)[0]:
            return None
        try:
            return int(self.ray.get(reference))
        except self.ray.exceptions.RayTaskError as error:  # the folder cannot be written to from there, for example
            note_error(run.folder, str(error).strip().splitlines()[-1])
            return 1
        except self.ray.exceptions.RayError:  # more deaths than Ray retries
            return -signal.SIGKILL

    def stop(self, jobs: list[Any], number: int) -> None:
        references = [reference for _, reference in jobs]
        for reference in references:
            self.ray.cancel(reference)
        if references:
            self.ray.wait(references, num_returns=len(references), timeout=PATIENCE)
        self.ray.shutdown()


def carry_out(run: PlannedRun) -> int:
    """In a Ray worker: one run, its exit code."""
    child = start_run(run)
    try:
        while (code := exit_code(child)) is None:
            time.sleep(0.2)  # and not child.wait(): a task is cancelled between two instructions of Python
        return code
    except KeyboardInterrupt:
        stop([child], signal.SIGTERM)
        raise


def _connected(address: str) -> ModuleType:
    try:
        import ray
    except ImportError:
        raise BadInput("--ray needs Ray: pip install 'mbdp[ray]'") from None
    if address != "auto":
        _check_reachable(address)
    try:
        ray.init(address=address, logging_level=logging.ERROR, log_to_driver=False)
    except Exception as error:  # Ray has many ways to say that it cannot
        raise BadInput(
            f"--ray {address}: no Ray cluster can be reached ({' '.join(str(error).split())[:200]})"
        ) from None
    return ray


def _check_reachable(address: str) -> None:
    """Ask before Ray does: it would try for minutes, and say so on many lines."""
    host, colon, port = address.rpartition(":")
    if not colon or not host or "/" in host or not port.isdecimal() or int(port) > 65535:
        raise BadInput(f"--ray takes HOST:PORT of the head node, or auto; not {address!r}")
    try:
        socket.create_connection((host, int(port)), timeout=10).close()
    except OSError as error:
        raise BadInput(f"--ray {address}: nothing answers there ({error.strerror or error})") from None
    command = [sys.executable, "-m", "ray.scripts.scripts", "health-check", "--address", address]
    try:
        subprocess.run(command, check=True, capture_output=True, timeout=HEALTH_CHECK)
    except subprocess.SubprocessError:
        raise BadInput(f"--ray {address}: what answers there is not the head of a Ray cluster") from None

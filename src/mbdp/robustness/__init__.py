"""How far a policy can be trusted: anybody's policy in worlds that differ from the nominal one."""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mbdp.robustness.grid import PROTOCOL, Grid, evaluate_grid, evaluate_grids
    from mbdp.robustness.parameters import Parameter
    from mbdp.robustness.randomised import Randomised

__all__ = ["PROTOCOL", "Grid", "Parameter", "Randomised", "evaluate_grid", "evaluate_grids"]
ELSEWHERE = {"Parameter": "parameters", "Randomised": "randomised"}


def __getattr__(name: str) -> object:
    # The grid needs Gymnasium and MuJoCo; whoever only asks for the axes, as --help does, does not wait for them.
    if name not in __all__:
        raise AttributeError(f"module 'mbdp.robustness' has no attribute {name!r}")
    return getattr(importlib.import_module(f"mbdp.robustness.{ELSEWHERE.get(name, 'grid')}"), name)

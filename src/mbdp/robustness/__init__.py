"""How far a policy can be trusted: anybody's policy in worlds that differ from the nominal one."""

from mbdp.robustness.grid import PROTOCOL, Grid, evaluate_grid, evaluate_grids

__all__ = ["PROTOCOL", "Grid", "evaluate_grid", "evaluate_grids"]

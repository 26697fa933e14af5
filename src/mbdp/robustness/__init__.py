"""How far a policy can be trusted: anybody's policy in worlds that differ from the nominal one."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mbdp.robustness.grid import PROTOCOL, Grid, evaluate_grid, evaluate_grids

__all__ = ["PROTOCOL", "Grid", "evaluate_grid", "evaluate_grids"]


def __getattr__(name: str) -> object:
    # The grid needs Gymnasium and MuJoCo; whoever only asks for the axes, as --help does, does not wait for them.
    if name not in __all__:
        raise AttributeError(f"module 'mbdp.robustness' has no attribute {name!r}")
    from mbdp.robustness import grid

    return getattr(grid, name)

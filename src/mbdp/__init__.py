"""Good policies from few samples, and how far they can be trusted: model-based RL with double dropout (MBDP)."""

from typing import TYPE_CHECKING

from mbdp.dropout import model_dropout, rollout_dropout

if TYPE_CHECKING:
    from mbdp.api import MBDP as MBDP
    from mbdp.callbacks import Callback as Callback

__all__ = ["MBDP", "Callback", "model_dropout", "rollout_dropout"]


def __getattr__(name: str) -> object:
    # The agent needs JAX and MuJoCo; whoever borrows the dropout, or asks for --help, does not wait for them.
    if name == "MBDP":
        from mbdp.api import MBDP

        return MBDP
    if name == "Callback":
        from mbdp.callbacks import Callback

        return Callback
    raise AttributeError(f"module 'mbdp' has no attribute {name!r}")

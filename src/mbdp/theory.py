"""The quantities of Section 3.3: under its own name as it should read, with `printed_` in front as the paper has it.

Where the two differ, docs/errata.md says why and tests/test_theory.py has a counter-example to the printed one.
Rewards lie in [r_min, r_max], `bias` holds one number per member of the ensemble, values are discounted by `gamma`.
"""

import numpy as np
from numpy.typing import ArrayLike

from mbdp.dropout import check_fraction, model_dropout


def cvar(loss: ArrayLike, level: float) -> float:
    """CVaR_level of equally likely samples, Eq. 2.4: the mean of the largest fraction 1 - level of them.

    It is the Rockafellar-Uryasev formula at its minimiser, the VaR of Eq. 2.3, so a sample at the quantile counts
    with the share of it that belongs to the tail. Eq. 2.4 as printed agrees if no probability sits at the quantile.
    """
    check_fraction("level", level)
    loss = np.asarray(loss, float)
    var = np.quantile(loss, level, method="inverted_cdf")
    return float(var + np.maximum(loss - var, 0).mean() / (1 - level))


def v_alpha(returns: ArrayLike, alpha: float) -> float:
    """Value after rollout dropout of whole returns, -CVaR_alpha(-G), Eq. 3.4: the mean of the lowest 1 - alpha of them.

    Equally the infimum of E[xi G] over 0 <= xi <= 1 / (1 - alpha) with E[xi] = 1: the worst perturbed world.
    """
    return -cvar(-np.asarray(returns, float), alpha)


def printed_v_alpha(returns: ArrayLike, alpha: float) -> float:
    """The supremum of E[xi G] over 0 <= xi <= 1 / alpha with E[xi] = 1, Eq. 3.4-3.5: the mean of what is dropped."""
    return cvar(returns, 1 - alpha)


def eps_alpha(alpha: float, *, gamma: float, r_max: float, r_min: float) -> float:
    """Upper bound on what dropping whole returns takes from the value: 0 <= V - V_alpha <= eps_alpha, Lemma 3.2."""
    check_fraction("alpha", alpha)
    return alpha * (r_max - r_min) / (1 - gamma)


def printed_eps_alpha(alpha: float, *, gamma: float, r_max: float) -> float:
    """Eq. 3.6, which holds for rewards that are never negative."""
    check_fraction("alpha", alpha)
    return alpha * (1 + alpha) / ((1 - alpha) * (1 - gamma)) * r_max


def eps_alpha_per_step(alpha: float, *, gamma: float, r_max: float, r_min: float) -> float:
    """The same bound for dropping at every step, as Algorithm 1 does: up to 1 / (1 - gamma) times as large."""
    check_fraction("alpha", alpha)
    return min(alpha / (1 - gamma), 1) * (r_max - r_min) / (1 - gamma)


def discrepancy_bound(
    bias: ArrayLike, *, alpha: float, beta: float, gamma: float, lipschitz: float, r_max: float, r_min: float
) -> float:
    """D_{alpha,beta}, upper bound on |V_alpha - V|, imagined and real, Theorem 3.3; with the kept members' bias."""
    bias = np.asarray(bias, float)
    model_error = gamma * lipschitz / (1 - gamma) * bias[model_dropout(bias, beta)].mean()
    return float(model_error + eps_alpha(alpha, gamma=gamma, r_max=r_max, r_min=r_min))


def printed_discrepancy_bound(
    bias: ArrayLike, *, alpha: float, beta: float, gamma: float, lipschitz: float, r_max: float
) -> float:
    """D as printed in Eq. 3.8: with the bias of all members, Eq. 3.9, and everything times 1 - beta."""
    check_fraction("beta", beta)
    model_error = gamma * lipschitz / (1 - gamma) * np.asarray(bias, float).mean()
    return float((1 - beta) * (model_error + printed_eps_alpha(alpha, gamma=gamma, r_max=r_max)))


def update_residual(value: float, imagined_value: float, bound: float) -> float:
    """epsilon_{k+1} of Eq. 3.12: real V minus (imagined V_alpha - D). It is the slack of the bound."""
    return value - (imagined_value - bound)


def improvement(residual: float, eps: float) -> float:
    """Least gain in real V over one exact iteration of Eq. 3.10, Proposition 3.4, where `eps` is eps_alpha.

    It is lost twice: once as the bound of a perfect model, once between the V that Eq. 3.10 maximises and V_alpha.
    """
    return residual - 2 * eps


def printed_improvement(residual: float, eps: float) -> float:
    """eta of Eq. 3.11."""
    return residual - eps

"""The two functions in the loop of mbrl-lib, as the example shows it."""

from importlib import import_module

import numpy as np


def test_mbrls_planner_balances_the_point_mass_with_the_borrowed_dropout(capsys):
    example = import_module("examples.borrow_the_dropout")
    returns = example.run(episodes=example.RANDOM_EPISODES + 2)
    random, planned = np.split(np.array(returns), [example.RANDOM_EPISODES])
    assert planned.min() > 45 > random.max()
    assert capsys.readouterr().out.count("members kept") == 2

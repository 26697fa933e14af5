"""Environments that are not this library's, imported by their ids on the command line."""

import gymnasium

CLASSES = "tests.robustness.test_parameters"
CART, FORGETFUL = (f"{__name__}:tests/{name}-v0" for name in ("Cart", "Forgetful"))
gymnasium.register("tests/Cart-v0", entry_point=f"{CLASSES}:Cart", max_episode_steps=50)
gymnasium.register("tests/Forgetful-v0", entry_point=f"{CLASSES}:Forgetful", max_episode_steps=50)

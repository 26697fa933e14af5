"""Train MBDP on the inverted pendulum for a few minutes, then let the policy act."""

import gymnasium

from mbdp import MBDP

agent = MBDP("InvertedPendulum-v5", alpha=0.2, beta=0.2, seed=0)
agent.learn(4_000, progress_bar=True)

env = gymnasium.make("InvertedPendulum-v5")
observation, _ = env.reset(seed=1)
total, over = 0.0, False
while not over:
    action = agent.predict(observation, deterministic=True)[0]
    observation, reward, terminated, truncated, _ = env.step(action)
    total, over = total + float(reward), terminated or truncated
print(f"return {total:.0f} of at most 1000")
agent.save("pendulum.mbdp")

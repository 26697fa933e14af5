"""`mbdp evaluate`: the return of a trained policy."""

import argparse
from pathlib import Path

from mbdp.experiments.evaluate import FIRST_SEED, evaluate
from mbdp.experiments.training_world import make_judging_world, world_of
from mbdp.experiments.video import check_video, write_video
from mbdp.types import BadInput

EXAMPLES = """\
examples:
  mbdp evaluate runs/mbdp/Hopper-v5_0
  mbdp evaluate runs/mbdp/Hopper-v5_0 --episodes 1 --video hop.mp4
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EXAMPLES
    parser.add_argument("run", type=Path, metavar="RUN", help="a run directory")
    parser.add_argument("--env", metavar="ID", help="needed for an id that imports a module: files import no code")
    parser.add_argument("--episodes", type=int, default=10, metavar="N", help="how many (default: 10)")
    parser.add_argument("--seed", type=int, default=FIRST_SEED, help=f"of the first episode (default: {FIRST_SEED})")
    parser.add_argument("--video", type=Path, metavar="FILE", help="film the first episode, as hop.mp4 or hop.gif")


def run(args: argparse.Namespace) -> None:
    if args.episodes < 1 or args.seed < 0:
        raise BadInput("--episodes must be at least 1 and --seed at least 0")
    if args.video:
        check_video(args.video)
    from mbdp.envs.tasks import registered
    from mbdp.policies.policy import load_policy

    policy = load_policy(args.run)
    perturb = world_of(args.run).perturb
    env_id = args.env or registered(policy.env, args.run)
    envs = [make_judging_world(env_id, perturb) for _ in range(args.episodes)]
    if perturb:
        print(f"as in training, with {', '.join(f'{axis} {value:g}' for axis, value in perturb.items())}")
    result = evaluate(policy, envs, first_seed=args.seed)
    for i, (value, length) in enumerate(zip(result.returns, result.lengths, strict=True)):
        print(f"episode {i:3}  seed {args.seed + i}  return {value:10.2f}  length {length}")
    print(f"mean return {result.returns.mean():.2f} ± {result.returns.std():.2f} over {args.episodes} episodes")
    if args.video:
        from mbdp.experiments.film import Scene, drawable

        env = drawable(env_id, perturb)
        write_video([Scene(policy, env, policy.env, args.seed)], args.video)
        print(f"video: {args.video}")

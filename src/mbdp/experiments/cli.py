"""The command line `mbdp`: one sub-command per module, errors as one line."""
# PYTHON_ARGCOMPLETE_OK

import argparse
import difflib
import importlib
import os
import signal
import sys
from collections.abc import Sequence
from typing import NoReturn

from mbdp.types import BadInput

# Each module has add_arguments(parser) and run(args), and is imported only when its command is called: a quick start.
COMMANDS = {
    "train": ("mbdp.experiments.train_command", "train a policy: MBDP, MBPO, SAC, STEVE, SLBO or an ablation arm"),
    "resume": ("mbdp.experiments.resume_command", "go on with a run that was interrupted, exactly where it stopped"),
    "evaluate": ("mbdp.experiments.evaluate_command", "run a trained policy and report its return"),
    "watch": ("mbdp.experiments.watch_command", "watch a trained policy in a window"),
    "robustness": ("mbdp.experiments.robustness_command", "run policies in a grid of perturbed worlds"),
    "export": ("mbdp.experiments.export_command", "write a policy as an ONNX file, for machines without JAX"),
    "sweep": ("mbdp.experiments.sweep_command", "carry out many runs, on this machine or on a Ray cluster"),
    "report": ("mbdp.experiments.report_command", "one HTML page about many runs, that needs no network"),
    "reproduce": ("mbdp.experiments.reproduce_command", "make a figure of the paper again, from the runs to the PDF"),
}


EXAMPLES = (
    "examples:",
    "  mbdp train Hopper-v5                       a run directory, runs/mbdp/Hopper-v5_0",
    "  mbdp evaluate runs/mbdp/Hopper-v5_0        the return of its policy",
    "  mbdp robustness runs/mbdp/Hopper-v5_0      its return in heavier and more slippery worlds",
)


class OneLineParser(argparse.ArgumentParser):
    """An argument parser whose errors are one line, with a suggestion for a misspelt option."""

    def error(self, message: str) -> NoReturn:
        raise BadInput(message)

    def parse_args(self, args: Sequence[str] | None = None, namespace: None = None) -> argparse.Namespace:  # type: ignore[override]
        known, unknown = self.parse_known_args(args, namespace)
        if unknown:
            options = [option for action in self._actions for option in action.option_strings]
            near = difflib.get_close_matches(unknown[0].split("=")[0], options, n=1)
            hint = f"did you mean {near[0]}?" if near else f"see {self.prog} --help"
            raise BadInput(f"unknown argument {unknown[0]!r}: {hint}")
        return known


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code: 0, 2 after bad input, 130 after Ctrl-C, 143 after SIGTERM."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    if "_ARGCOMPLETE" in os.environ:  # a shell asks what could follow
        importlib.import_module("mbdp.experiments.completion").complete(COMMANDS)
    try:
        _run(arguments)
    except BadInput as error:
        print(f"mbdp: {error}", file=sys.stderr)
        return 2
    except RuntimeError as error:
        if "MUJOCO_GL" not in str(error):  # MuJoCo checks it when it is imported
            raise
        print(f"mbdp: {error}; unset it, or set it to egl, osmesa or glfw", file=sys.stderr)
        return 2
    except KeyboardInterrupt as error:
        number, why = error.args or (signal.SIGINT, "")
        print(f"mbdp: interrupted {why}".rstrip(), file=sys.stderr)
        return 128 + int(number)
    except BrokenPipeError:
        # Whoever read our output, `head` for example, has enough of it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return 0


def _run(arguments: list[str]) -> None:
    if not arguments or arguments[0] in ("-h", "--help"):
        print(_overview())
        return
    if arguments[0] == "--version":
        print(f"mbdp {importlib.import_module('importlib.metadata').version('mbdp')}")
        return
    name = arguments[0]
    if name not in COMMANDS:
        near = difflib.get_close_matches(name, COMMANDS, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"the commands are {', '.join(COMMANDS)}"
        raise BadInput(f"unknown command {name!r}: {hint}")
    module_name, summary = COMMANDS[name]
    module = importlib.import_module(module_name)
    parser = OneLineParser(
        prog=f"mbdp {name}",
        description=f"{summary[0].upper()}{summary[1:]}.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    module.add_arguments(parser)
    args = parser.parse_args(arguments[1:])
    # The module of my_module:MyEnv-v0 may lie in the working directory, as for `python -m`.
    if ":" in (getattr(args, "env", None) or ""):
        sys.path.insert(0, os.getcwd())
    module.run(args)


def _overview() -> str:
    rows = [f"  {name:12}{summary}" for name, (_, summary) in COMMANDS.items()]
    return "\n".join(
        [
            "mbdp: good policies from few samples, and how far they can be trusted.",
            "",
            "usage: mbdp COMMAND ...      (mbdp COMMAND --help explains a command)",
            "",
            *rows,
            "",
            *EXAMPLES,
        ]
    )


if __name__ == "__main__":
    sys.exit(main())

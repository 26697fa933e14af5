"""Shell completion by argcomplete: commands, options, values, and the tasks that the library knows."""

import argparse
import importlib
import os
from collections.abc import Mapping

from mbdp.envs.tasks import TASKS

VERSIONS = {"Pendulum": 1, "mbdp/PointMass": 0}
IDS = [f"{name}-v{VERSIONS.get(name, 5)}" for name in TASKS]
FOLDERS = {"run", "runs", "policies", "out"}  # arguments that are folders


def complete(commands: Mapping[str, tuple[str, str]]) -> None:
    """Answer the shell that asks what could follow, and end the process; only one command's module is imported."""
    import argcomplete

    words = os.environ.get("COMP_LINE", "").split()
    parser = argparse.ArgumentParser(prog="mbdp")
    parser.add_argument("--version", action="store_true")
    below = parser.add_subparsers()
    for name, (module, summary) in commands.items():
        command = below.add_parser(name, help=summary)
        if name in words[1:2]:
            importlib.import_module(module).add_arguments(command)
            _add_completers(command)
    argcomplete.autocomplete(parser, print_suppressed=True)  # options that --help hides are options all the same


def _add_completers(parser: argparse.ArgumentParser) -> None:
    from argcomplete.completers import DirectoriesCompleter

    for action in parser._actions:
        if action.dest == "env":
            action.completer = lambda **_: IDS  # type: ignore[attr-defined]
        elif action.dest in FOLDERS:
            action.completer = DirectoriesCompleter()  # type: ignore[attr-defined]

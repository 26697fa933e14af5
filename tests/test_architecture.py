"""Imports go one way, and one name is one thing."""

import ast
import itertools
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src"

# Lowest first. A module imports from its own layer and from those below; a package stands for all that is in it.
LAYERS = (
    ("types", "dropout", "parallel", "interruption", "compiling", "storage.files", "streams"),
    ("policies", "theory", "plans"),
    ("networks", "models", "agents", "replay", "rollout", "envs"),
    ("termination", "user_functions"),
    ("config", "presets"),
    ("algorithm",),
    ("baselines",),
    ("methods",),
    ("storage.checkpoint", "storage.datasets", "storage.minari_data"),
    ("callbacks",),
    ("api",),
    ("experiments",),
)
# These stand apart from the layers: what each may import besides itself. Only experiments may import them.
APART = {
    "analysis": {"types", "theory"},
    "robustness": {"envs", "policies", "types", "parallel", "interruption"},
}
EXCEPTIONS = {("api", "experiments.display")}  # the progress bar of `learn`, imported when it is asked for
LEARNER = {"jax", "jaxlib", "equinox", "optax"}

# Names that several modules share on purpose, because code takes those modules for one another.
INTERFACE = {
    "Agent": {"agents", "baselines"},
    "Critics": {"agents"},
    "Config": {"config", "baselines"},
    "Array": {"types", "dropout"},  # dropout imports nothing of ours, so that anyone can borrow it
}

Imports = dict[str, set[str]]  # of each module, by names without `mbdp.`


def module_name(file: Path) -> str:
    parts = file.relative_to(SOURCE / "mbdp").with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {module_name(file): file for file in sorted((SOURCE / "mbdp").rglob("*.py"))}
TREES = {name: ast.parse(file.read_text()) for name, file in FILES.items()}


def imported_names(tree: ast.AST) -> set[str]:
    """Full names of all that a module imports, wherever in it: modules, and what is taken from them."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def imports_between(trees: Mapping[str, ast.AST]) -> Imports:
    """Which of our modules each of them imports."""
    ours = {
        module: [name.removeprefix("mbdp.") for name in imported_names(tree) if name.startswith("mbdp.")]
        for module, tree in trees.items()
    }
    return {module: {_module_of(name, trees) for name in names} for module, names in ours.items()}


def _module_of(full: str, modules: Iterable[str]) -> str:
    """The module that a name is taken from: the longest beginning of it that is one."""
    parts = full.split(".")
    beginnings = [".".join(parts[:length]) for length in range(len(parts), 0, -1)]
    return next((name for name in beginnings if name in modules), "")


def part_of(module: str) -> str:
    """The entry of LAYERS or APART that a module belongs to, or nothing."""
    parts = (*APART, *itertools.chain(*LAYERS))
    return next((part for part in parts if module == part or module.startswith(part + ".")), "")


def wrong_imports(imports: Imports) -> list[str]:
    """Imports against the direction."""
    return [
        f"{module} imports {other}"
        for module, others in imports.items()
        for other in sorted(others)
        if part_of(module) and (module, other) not in EXCEPTIONS and not _allowed(part_of(module), part_of(other))
    ]


def _allowed(importer: str, imported: str) -> bool:
    if importer == imported:
        return True
    if importer == "dropout" or not imported:
        return False
    if importer in APART:
        return imported in APART[importer]
    return importer == "experiments" if imported in APART else _height(imported) <= _height(importer)


def _height(part: str) -> int:
    return next(height for height, layer in enumerate(LAYERS) if part in layer)


def cycle_in(imports: Imports) -> list[str]:
    """Modules of which each imports the one before it, and the first the last; none if there is no such circle."""
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def reachable(module: str, imports: Imports) -> set[str]:
    """A module and all of ours that its import brings along."""
    found, waiting = set(), [module]
    while waiting:
        if (name := waiting.pop()) not in found:
            found.add(name)
            waiting += imports[name]
    return found


def shared_names(names: Mapping[str, set[str]]) -> list[str]:
    """Names that several modules define, and that are not an interface."""
    owners = defaultdict(list)
    for module, defined in names.items():
        for name in defined:
            owners[name].append(module)
    return [
        f"{name} is in {' and '.join(modules)}"
        for name, modules in sorted(owners.items())
        if len(modules) > 1 and not {part_of(module) for module in modules} <= INTERFACE.get(name, set())
    ]


def public_types(tree: ast.Module) -> set[str]:
    """Classes and aliases of types, which are both written LikeThis."""
    classes = {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
    targets = [target for node in tree.body if isinstance(node, ast.Assign) for target in node.targets]
    aliases = {target.id for target in targets if isinstance(target, ast.Name)}
    return {name for name in classes if name[0] != "_"} | {name for name in aliases if re.match("[A-Z]+[a-z]", name)}


def test_imports_go_one_way():
    assert wrong_imports(imports_between(TREES)) == []


def test_no_module_imports_itself_by_way_of_others():
    assert cycle_in(imports_between(TREES)) == []


def test_every_module_has_a_place():
    assert [module for module in FILES if not part_of(module)] == ["", "__main__", "storage"]


@pytest.mark.parametrize("room", APART)
def test_what_stands_apart_does_not_bring_the_learner(room):
    imports = imports_between(TREES)
    reached = set().union(*(reachable(module, imports) for module in imports if part_of(module) == room))
    heavy = {name: LEARNER & {full.split(".")[0] for full in imported_names(TREES[name])} for name in reached}
    assert {name: found for name, found in heavy.items() if found} == {}


def test_no_two_files_have_one_name():
    stems = [file.stem for file in FILES.values() if file.stem != "__init__"]
    assert sorted(stems) == sorted(set(stems))


def test_no_two_public_types_have_one_name():
    assert shared_names({module: public_types(tree) for module, tree in TREES.items()}) == []


@pytest.mark.parametrize(
    ("module", "code", "found"),
    [
        ("rollout", "from mbdp.algorithm import Learner", "rollout imports algorithm"),
        ("types", "def f():\n    from mbdp import config", "types imports config"),
        ("agents.sac", "import mbdp.experiments.run", "agents.sac imports experiments.run"),
        ("dropout", "from mbdp.types import Array", "dropout imports types"),
        ("analysis.curves", "from mbdp.api import MBDP", "analysis.curves imports api"),
        ("robustness.grid", "from mbdp.replay import pack", "robustness.grid imports replay"),
        ("algorithm", "from mbdp.robustness import Grid", "algorithm imports robustness"),
    ],
)
def test_a_wrong_import_would_be_found(module, code, found):
    assert wrong_imports(imports_between(TREES | {module: ast.parse(code)})) == [found]


def test_a_circle_would_be_found():
    changed = TREES | {"replay": ast.parse("def f():\n    from mbdp.envs.interact import World")}
    assert set(cycle_in(imports_between(changed))) == {"replay", "envs.interact"}


def test_a_name_used_twice_would_be_found():
    one, two = "class Outcome: pass", "Outcome = tuple[int, int]"
    names = {module: public_types(ast.parse(code)) for module, code in (("envs.x", one), ("robustness.x", two))}
    assert shared_names(names) == ["Outcome is in envs.x and robustness.x"]

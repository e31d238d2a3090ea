"""Dependencies point one way, held by reading the imports of every file."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from jaxscope import registry

ROOT = Path(__file__).parent.parent
#: Folders of the package and what they import as.
ROOMS = {"jaxscope": "jaxscope", "envs": "jaxscope.envs", "agents": "jaxscope.agents"}
MOST_LINES = 450


def sources(folder: str) -> list[Path]:
    """Python files of a top-level folder, those behind its links left out."""
    return [path for path in sorted((ROOT / folder).rglob("*.py")) if path.resolve() == path]


def module_name(path: Path) -> str:
    folder, *parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join([ROOMS[folder], *(part for part in parts if part != "__init__")])


def imports(path: Path) -> set[str]:
    """All modules that a file may import, at its top or inside a function; `from a import b` counts as `a.b`."""
    package = module_name(path).split(".")
    if path.name != "__init__.py":
        package = package[:-1]
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            up = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*up, *([node.module] if node.module else [])])
            found |= {f"{base}.{alias.name}" for alias in node.names}
    return found


IMPORTS = {module_name(path): imports(path) for folder in ROOMS for path in sources(folder)}


def within(module: str, *packages: str) -> bool:
    return any(module == package or module.startswith(package + ".") for package in packages)


def arrows(of: str, to: str, but: tuple[str, ...] = ()) -> list[str]:
    """Imports from `of` to `to`, for modules that are not within `but`."""
    return [
        f"{module} imports {target}"
        for module, targets in IMPORTS.items()
        if within(module, of) and not within(module, *but)
        for target in sorted(targets)
        if within(target, to)
    ]


def test_the_reader_of_imports_sees_them():
    assert len(IMPORTS) > 60
    assert "jaxscope.registry" in IMPORTS["jaxscope.make"]
    assert "jaxscope.jaxmarl.from_jaxmarl" in IMPORTS["jaxscope.make"]  # inside a function
    assert arrows("jaxscope.ppo", "jaxscope.losses") == ["jaxscope.ppo imports jaxscope.losses"]
    assert not arrows("jaxscope.losses", "jaxscope.ppo")


def family_of(module: str) -> str:
    """The family of environments that a file belongs to, by its name; shared files are families of their own."""
    name = module.split(".")[-1].strip("_")
    families = [family for family in registry.names("jaxscope.envs") if f"{name}_".startswith(f"{family}_")]
    return max(families, key=len, default=name)


def test_environments_know_only_types_and_spaces_and_their_own_family():
    # Of the first, registry and options are of texts only: what an unknown name gets told, and the grammar of options.
    # The last is what environments with moving discs share.
    known = ("jaxscope.types", "jaxscope.spaces", "jaxscope.registry", "jaxscope.options_in_names", "jaxscope.drawing")
    known += ("jaxscope.envs._point_mass", "jaxscope.envs._point_mass_render")
    for module, targets in IMPORTS.items():
        if within(module, "jaxscope.envs"):
            family = family_of(module)
            for target in targets:
                own = within(target, f"jaxscope.envs.{family}") or target.startswith(f"jaxscope.envs._{family}_")
                assert own or not within(target, "jaxscope") or within(target, *known), f"{module} imports {target}"


def test_agents_know_an_environment_only_where_a_partner_reads_its_state():
    assert not arrows("jaxscope.agents", "jaxscope.envs", but=("jaxscope.agents.partners",))
    for module, targets in IMPORTS.items():
        if within(module, "jaxscope.agents.partners"):
            family = [*module.split("."), "none"][3]
            strangers = [t for t in targets if within(t, "jaxscope.envs") and not within(t, f"jaxscope.envs.{family}")]
            assert not strangers, module


def test_agents_know_no_training():
    known = ("jaxscope.types", "jaxscope.spaces", "jaxscope.registry", "jaxscope.agents", "jaxscope.envs")
    strangers = [arrow for arrow in arrows("jaxscope.agents", "jaxscope") if not within(arrow.split()[-1], *known)]
    assert not strangers


@pytest.mark.parametrize("module", ["jaxscope.losses", "jaxscope.returns"])
def test_losses_and_returns_are_functions_of_arrays(module):
    assert not arrows(module, "jaxscope")


def test_the_library_knows_environments_and_partners_by_their_interface_only():
    rooms = ("jaxscope.envs", "jaxscope.agents")
    assert not arrows("jaxscope", "jaxscope.envs", but=rooms)
    assert not arrows("jaxscope", "jaxscope.agents.partners", but=rooms)


def test_only_the_command_line_and_runs_know_of_runs():
    assert not arrows("jaxscope", "jaxscope.runs", but=("jaxscope.runs", "jaxscope.cli"))
    assert not arrows("jaxscope", "jaxscope.cli", but=("jaxscope.cli",))


def test_import_is_light():
    code = "import sys, jaxscope; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "jaxscope.make" in loaded
    assert not loaded & {"jaxmarl", "matplotlib", "orbax", "jaxscope.runs", "jaxscope.cli"}
    assert not done.stderr


@pytest.mark.parametrize("folder", [*ROOMS, "benchmarks"])
def test_files_are_short(folder):
    lengths = {path.name: len(path.read_text().splitlines()) for path in sources(folder)}
    assert lengths
    assert not {name: length for name, length in lengths.items() if length > MOST_LINES}

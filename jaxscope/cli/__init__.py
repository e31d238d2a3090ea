"""The command line: one file per command, and this dispatcher.

A command's file has `Options` (a frozen dataclass, or a function of the words after the command that gives one) and
`run(options)`. Its docstring is its help.

Commands are named after what they do, so loading `list.py` or `eval.py` puts that name into this module: no function
here may use the built-in of the same name.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from jaxscope import registry

COMMANDS = "jaxscope.cli"
_FRAME = "─━│┃╭╮╰╯┌┐└┘-= "


def main(argv: Sequence[str] | None = None) -> None:
    """Run a command; where the input is at fault, exits with one clear line and 1, or 2 for the options themselves."""
    words = [*(sys.argv[1:] if argv is None else argv)]
    known = registry.names(COMMANDS)
    if not words or words[0] in ("-h", "--help"):
        print(_overview(known))
        return
    if words[0] == "--version":
        from jaxscope import __version__

        print(f"jaxscope {__version__}")
        return
    if words[0] not in known:
        _fail(registry.unknown("there is no command", words[0], known))
    _use_compilation_cache()
    _offer_cpu_devices()
    try:
        command = registry.load(COMMANDS, words[0])
        command.run(_options(command, words[0], words[1:]))
    except KeyboardInterrupt:
        print("\ninterrupted; what was written so far is whole", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
    except (ValueError, FloatingPointError, ImportError) as error:
        if os.environ.get("JAXSCOPE_TRACEBACK"):  # for authors of environments and partners
            raise
        _fail(str(error))
    except OSError as error:
        if error.errno == errno.ENOSPC:
            _fail(f"the disk is full ({error.filename or 'while writing'}); everything written before is whole")
        _fail(f"{error.filename}: {error.strerror}" if error.filename else str(error))
    except RuntimeError as error:
        if "RESOURCE_EXHAUSTED" not in str(error):
            raise
        _fail(f"out of memory on the device: {str(error).splitlines()[0]}")


def _options(command, name: str, words: Sequence[str]):
    options, prog = command.Options, f"jaxscope {name}"
    if not isinstance(options, type):
        options, words, prog = options(words, prog)
        if options is None:
            sys.exit(0)
    return _parsed(options, words, prog, (command.__doc__ or "").strip())


def _parsed(options: type, words: Sequence[str], prog: str, description: str):
    """`words` as `options`; what tyro has to say against them becomes one line."""
    import tyro

    complaint = io.StringIO()
    try:
        with contextlib.redirect_stderr(complaint):
            return tyro.cli(
                options, args=words, prog=prog, description=description, config=(tyro.conf.OmitArgPrefixes,)
            )
    except SystemExit as stop:
        if stop.code in (None, 0):
            raise
        _fail(f"{_gist(complaint.getvalue())} (`{prog} --help` shows the options)", int(stop.code))


def _gist(complaint: str) -> str:
    """The first paragraph of a framed message, without its title and frame."""
    rows = [row.strip(_FRAME) for row in complaint.strip().splitlines()[1:]]
    while rows and not rows[0]:
        rows.pop(0)
    return " ".join(rows[: rows.index("")] if "" in rows else rows)


def _overview(known: Sequence[str]) -> str:
    lines = ["jaxscope: train agents against populations of partners", "", "usage: jaxscope COMMAND ...", ""]
    for name in known:
        summary = (registry.load(COMMANDS, name).__doc__ or "").strip().splitlines()[0]
        lines.append(f"  {name:<10} {summary}")
    return "\n".join([*lines, "", "`jaxscope COMMAND --help` tells more."])


def _use_compilation_cache() -> None:
    """Keep compiled programs between calls, unless the user has chosen a place for them or turned them off."""
    if "JAX_COMPILATION_CACHE_DIR" in os.environ or "JAX_ENABLE_COMPILATION_CACHE" in os.environ:
        return
    import jax

    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    jax.config.update("jax_compilation_cache_dir", os.path.join(base, "jaxscope", "xla"))


def _offer_cpu_devices() -> None:
    """One CPU device per core, so that `--devices` can use them; programs on one device are not affected."""
    import jax

    if "xla_force_host_platform_device_count" in os.environ.get("XLA_FLAGS", ""):
        return
    with contextlib.suppress(RuntimeError):  # JAX is in use already, as when called from Python
        jax.config.update("jax_num_cpu_devices", _usable_cores())


def _usable_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _fail(message: str, code: int = 1) -> NoReturn:
    print(f"jaxscope: {' '.join(message.split())}", file=sys.stderr)
    sys.exit(code)

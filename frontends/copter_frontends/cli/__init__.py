"""The ``copter`` command: a module for each of its commands; ``copter_serve.commands`` has those of the service."""

from __future__ import annotations

import os
import sys

import click

# Set before SciPy is imported: the matrices here are tiny, and threads that spin while waiting would slow them down.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from copter_frontends.cli.compare import compare
from copter_frontends.cli.doctor import doctor
from copter_frontends.cli.examples import ByTask
from copter_frontends.cli.explain import explain
from copter_frontends.cli.habits import config_option, quiet_option
from copter_frontends.cli.output import complain
from copter_frontends.cli.replay import replay
from copter_frontends.cli.resume import resume
from copter_frontends.cli.simulate import simulate
from copter_frontends.cli.solve import solve
from copter_frontends.cli.tape import tape, verify
from copter_frontends.policies.registry.elsewhere import PartlyElsewhere

COMMANDS: PartlyElsewhere[click.Command] = PartlyElsewhere(
    {
        "compare": compare,
        "doctor": doctor,
        "explain": explain,
        "kueue-controller": "copter_serve.commands.kueue:kueue_controller",
        "replay": replay,
        "resume": resume,
        "serve": "copter_serve.commands.serve:serve",
        "shadow": "copter_serve.commands.shadow:shadow",
        "simulate": simulate,
        "slurm": "copter_serve.commands.slurm:slurm",
        "solve": solve,
        "tape": tape,
        "verify": verify,
    }
)
"""All commands; those of another package are loaded when they are asked for."""


@click.group(
    cls=ByTask,
    context_settings={"help_option_names": ["-h", "--help"]},
    commands=COMMANDS,
    epilog="`copter COMMAND --help` ends with examples. Exit codes: 0 done, 1 failed, 2 bad input. "
    "NO_COLOR=1: no colours.",
)
@click.version_option(package_name="copter-lp", prog_name="copter")
def cli() -> None:
    """Continual optimization for round-based GPU-cluster schedulers."""


for command in (simulate, compare, *simulate.problems.values(), *compare.problems.values()):
    command.params += [config_option(), quiet_option()]
for command in (replay, resume, solve):
    command.params.append(quiet_option())


def main(arguments: list[str] | None = None) -> None:
    """Run the command. Exit code 0 if done, 1 if the run failed, 2 for bad arguments or input.

    A simulation that is ended after a round, with its results so far, has exit code 130 (Ctrl-C) or 143 (SIGTERM). One
    that is ended at once, by a second Ctrl-C or before the first round, has 1.

    An error is printed as one line on stderr. With COPTER_DEBUG=1 in the environment a failed run shows its traceback.
    """
    try:
        code = cli.main(arguments, prog_name="copter", standalone_mode=False)
    except click.ClickException as error:
        if isinstance(error, click.exceptions.NoArgsIsHelpError):
            error.show()
            sys.exit(error.exit_code)
        complain(error.format_message())
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        complain("interrupted")
        sys.exit(1)
    except ModuleNotFoundError as error:
        complain(
            f"this needs the package {error.name}, which is not there: pip install 'copter-lp[{extra_of(error.name)}]'"
        )
        sys.exit(1)
    except Exception as error:
        if os.environ.get("COPTER_DEBUG") == "1":
            raise
        complain(f"{error}" if _is_ours(error) else f"{type(error).__name__}: {error}")
        sys.exit(1)
    sys.exit(code if isinstance(code, int) else 0)


EXTRAS = {
    **dict.fromkeys(("highspy",), "highs"),
    **dict.fromkeys(("pyarrow", "matplotlib", "jinja2"), "report"),
    **dict.fromkeys(("starlette", "uvicorn", "httptools", "uvloop", "prometheus_client"), "serve"),
    "kubernetes": "kubernetes",
    "numba": "frontends",
}
"""The extra of the distribution that installs a package."""


def extra_of(package: str | None) -> str:
    """Return the extra that installs a package that was not found."""
    return EXTRAS.get((package or "").partition(".")[0], "all")


def _is_ours(error: Exception) -> bool:
    # imported here, because it loads the engine, which a command that failed early has not loaded
    from copter.runtime.errors import CopterError

    return isinstance(error, CopterError)

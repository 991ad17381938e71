"""Independent runs as Ray tasks; lost tasks are repeated. Only this file imports Ray here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from copter_frontends.cli.habits import is_quiet
from copter_frontends.cli.output import InputError

Given = TypeVar("Given")
Result = TypeVar("Result")

TRIES_AGAIN = 3  # times that a task is repeated after its process or machine died


def over_ray(address: str, function: Callable[[Given], Result], given: Sequence[Given]) -> Iterator[tuple[int, Result]]:
    """Apply a function to each argument in a separate Ray task; yields (index, result) as they finish.

    Parameters
    ----------
    address : str
        Address of a cluster, "auto" for the one that runs here, or "local" for one that ends with this process.
    function : callable
        Function that the tasks' processes can import.
    given : sequence

    Yields
    ------
    (place, result)
        Results in the order in which tasks end.

    Raises
    ------
    InputError
        If Ray is not installed, there is no cluster at the address, or a task was lost too often.
    """
    try:
        import ray  # an optional extra
    except ModuleNotFoundError:
        raise InputError("--ray needs Ray: pip install ray") from None
    if not ray.is_initialized():
        try:
            ray.init(address=address, log_to_driver=False, logging_level="warning")
        except (ConnectionError, ValueError) as error:
            raise InputError(f"--ray {address}: no cluster answers there ({error})") from None
    task: Any = ray.remote(function).options(max_retries=TRIES_AGAIN, num_cpus=1)
    waiting = {task.remote(each): place for place, each in enumerate(given)}
    while waiting:
        ready, _ = ray.wait(list(waiting), num_returns=1)
        place = waiting.pop(ready[0])
        try:
            yield place, ray.get(ready[0])
        except ray.exceptions.RayTaskError as error:
            raise error.cause from None
        except ray.exceptions.RayError as error:
            told = f"task {place} was lost {1 + TRIES_AGAIN} times ({type(error).__name__}): see Ray's logs"
            raise InputError(f"--ray {address}: {told}") from None


def gathered(
    address: str,
    function: Callable[[Given], Result],
    given: Sequence[Given],
    what: str,
    names: Sequence[str],
    ended: Callable[[int, Result], None] | None = None,
) -> list[Result]:
    """Run :func:`over_ray` with one progress display on stderr; results in the order of the arguments.

    Parameters
    ----------
    address, function, given
    what : str
        Name of the runs, in the plural.
    names : sequence of str
        Name of each run, for the display.
    ended : callable (place, result), optional
        Called with each result as it comes.
    """
    from rich.console import Console  # imported late, as in the commands, to save `--help` 2 s
    from rich.progress import Progress

    found: dict[int, Result] = {}
    with Progress(console=Console(stderr=True, quiet=is_quiet()), transient=True) as progress:
        bar = progress.add_task(what, total=len(given))
        for place, result in over_ray(address, function, given):
            found[place] = result
            if ended is not None:
                ended(place, result)
            progress.update(bar, advance=1, description=f"{names[place]} has ended")
    return [found[place] for place in range(len(given))]

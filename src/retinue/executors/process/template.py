"""A command line with places for the prompt, the run and its directory; filled in argument by argument.

No shell ever sees it, so a value needs no quoting and cannot become a second argument.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from string import Formatter

from retinue.core import ConfigInvalid, InvalidInput

PLACES = ("prompt", "run_id", "cwd")
MAX_PROMPT_ARGUMENT = 100_000
"""Bytes. Linux takes 131,072 for one argument, Windows 32,767 characters for all of them."""


@dataclass(frozen=True, slots=True)
class Template:
    arguments: tuple[str, ...]
    """The program and its arguments; `{prompt}`, `{run_id}` and `{cwd}` are places, `{{` is a brace."""

    def __post_init__(self) -> None:
        if not self.arguments or not self.arguments[0].strip():
            raise ConfigInvalid("a command needs a program", hint='for example ["my-agent", "--quiet"]')
        if self.names(self.arguments[:1]):
            raise ConfigInvalid("the program itself cannot be a place", hint="places belong in arguments")
        if any("\0" in argument for argument in self.arguments):
            raise ConfigInvalid("an argument cannot hold the NUL character", hint="remove it")
        self.names(self.arguments)

    @property
    def takes_prompt(self) -> bool:
        """Whether the prompt is an argument; otherwise it goes to stdin."""
        return "prompt" in self.names(self.arguments)

    def names(self, arguments: Sequence[str]) -> set[str]:
        return {name for argument in arguments for _, name in _parts(argument) if name}

    def fill(self, values: Mapping[str, str]) -> tuple[str, ...]:
        if self.takes_prompt:
            _check_prompt(values["prompt"], self.arguments[0])
        return tuple(
            "".join(text + (values[name] if name else "") for text, name in _parts(argument))
            for argument in self.arguments
        )


def _parts(argument: str) -> Iterator[tuple[str, str | None]]:
    try:
        parsed = list(Formatter().parse(argument))
    except ValueError as error:
        raise _wrong(argument, str(error)) from None
    for text, name, spec, conversion in parsed:
        if name is not None and (name not in PLACES or spec or conversion):
            raise _wrong(argument, f"no such place: {{{name}}}")
        yield text, name


def _wrong(argument: str, reason: str) -> ConfigInvalid:
    places = ", ".join(f"{{{place}}}" for place in PLACES)
    return ConfigInvalid(
        f"the command's argument {argument!r} cannot be filled in: {reason}",
        hint=f"the places are {places}; write {{{{ and }}}} for braces",
    )


def _check_prompt(prompt: str, program: str) -> None:
    by_stdin = "leave {prompt} out of the command: the prompt then goes to the program's stdin"
    if (size := len(prompt.encode())) > MAX_PROMPT_ARGUMENT:
        raise InvalidInput(
            f"a prompt of {size} bytes is too long for an argument", hint=by_stdin, limit=MAX_PROMPT_ARGUMENT
        )
    if "\0" in prompt:
        raise InvalidInput("an argument cannot hold the NUL character", hint=by_stdin)
    if program.lower().endswith((".bat", ".cmd")):
        # Windows gives a batch file's arguments to its shell, whatever was meant: they can be commands.
        raise InvalidInput("a batch file cannot take the prompt as an argument", hint=by_stdin)

"""Describes a program to run (command line, environment, directory) and the errors of starting it.

`CommandTemplate` is a command line with placeholders. It is filled in argument by argument and never passed
to a shell, so a value needs no quoting and cannot become a second argument.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from string import Formatter

from retinue.core import ConfigInvalid, InvalidInput, RetinueError, Unavailable, look_up_program

SUPPORTS_SECRET_FILES = sys.platform == "linux"
"""Whether programs can read secrets from files in memory. That needs a reaper."""
FIRST_SECRET_FILE = 100
"""The descriptor of the first secret file."""
PLACEHOLDERS = ("prompt", "run_id", "cwd")
MAX_PROMPT_BYTES = 100_000
"""Limit for a prompt that is passed as an argument. Linux allows 131,072 bytes for one argument, and Windows
32,767 characters for all arguments together."""


@dataclass(frozen=True, slots=True)
class Program:
    """A program to run."""

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(repr=False)
    """The whole environment; never shown."""
    cwd: Path
    grace: float = 2.0
    """Seconds from SIGTERM to SIGKILL."""
    secret_files: tuple[bytes, ...] = field(default=(), repr=False)
    """Secrets that the program reads from open files in memory (`secret_file_descriptor`), so that they are
    in no environment and in no folder."""

    @property
    def name(self) -> str:
        """The program's name without its directory, which may be outside the roots."""
        return os.path.basename(self.argv[0])  # noqa: PTH119 (`Path` would drop a trailing slash)

    def find_file(self, outside: Iterable[Path] = ()) -> str:
        """Find the program on its own PATH. A relative path starts at the program's own directory.

        Takes no program in one of the folders `outside`, unless the command names it by its path.
        """
        if not self.cwd.is_dir():
            raise start_error(self.name, "directory", errno.ENOENT)
        name = self.argv[0]
        if os.path.dirname(name):  # noqa: PTH120
            name = str(self.cwd.absolute() / name)
        found = look_up_program(name, self.env.get("PATH", os.defpath), outside)
        if found.path is None:
            if found.refused:
                raise Unavailable(
                    f"{self.name} cannot start: {'; '.join(found.refused)}",
                    hint="install it elsewhere, correct PATH, or name it by its absolute path",
                    program=self.name,
                )
            raise start_error(self.name, "program", errno.EACCES if Path(name).is_file() else errno.ENOENT)
        return str(found.path)


def secret_file_descriptor(position: int) -> int:
    """Return the descriptor of the secret file at this position of `Program.secret_files`."""
    return FIRST_SECRET_FILE + position


def start_error(name: str, step: str, number: int) -> RetinueError:
    """Build the error for a program that the system refused to start with this error number."""
    if step == "directory":
        return InvalidInput(
            f"{name} cannot start: its working directory cannot be entered",
            hint="name an existing directory",
            reason=os.strerror(number),
        )
    hint = {
        errno.ENOENT: "install it or correct its name; a script also needs the interpreter it names",
        errno.EACCES: "make the file executable",
        errno.ENOEXEC: "the file is not a program: a script needs a first line like `#!/bin/sh`",
        errno.E2BIG: "the arguments and the environment are too long: pass the prompt on stdin",
    }.get(number)
    return Unavailable(f"{name} cannot start: {os.strerror(number)}", hint=hint, program=name)


@dataclass(frozen=True, slots=True)
class CommandTemplate:
    """A command line with placeholders."""

    arguments: tuple[str, ...]
    """The program and its arguments. `{prompt}`, `{run_id}` and `{cwd}` are placeholders; `{{` is a brace."""

    def __post_init__(self) -> None:
        if not self.arguments or not self.arguments[0].strip():
            raise ConfigInvalid("a command needs a program", hint='for example ["my-agent", "--quiet"]')
        if self._placeholders(self.arguments[:1]):
            raise ConfigInvalid(
                "the program's name cannot contain a placeholder", hint="use placeholders in arguments"
            )
        if any("\0" in argument for argument in self.arguments):
            raise ConfigInvalid("an argument cannot contain the NUL character", hint="remove it")
        self._placeholders(self.arguments)

    @property
    def takes_prompt(self) -> bool:
        """Whether the prompt is an argument. Otherwise it goes to stdin."""
        return "prompt" in self._placeholders(self.arguments)

    def fill(self, values: Mapping[str, str]) -> tuple[str, ...]:
        """Return the command line with its placeholders replaced."""
        if self.takes_prompt:
            _check_prompt(values["prompt"], self.arguments[0])
        return tuple(
            "".join(text + (values[name] if name else "") for text, name in _parse_argument(argument))
            for argument in self.arguments
        )

    def _placeholders(self, arguments: Sequence[str]) -> set[str]:
        return {name for argument in arguments for _, name in _parse_argument(argument) if name}


def _parse_argument(argument: str) -> Iterator[tuple[str, str | None]]:
    """Yield each literal text with the placeholder that follows it, if any."""
    try:
        parsed = list(Formatter().parse(argument))
    except ValueError as error:
        raise _template_error(argument, str(error)) from None
    for text, name, spec, conversion in parsed:
        if name is not None and (name not in PLACEHOLDERS or spec or conversion):
            raise _template_error(argument, f"{{{name}}} is not a placeholder")
        yield text, name


def _template_error(argument: str, reason: str) -> ConfigInvalid:
    placeholders = ", ".join(f"{{{name}}}" for name in PLACEHOLDERS)
    return ConfigInvalid(
        f"the command's argument {argument!r} is not valid: {reason}",
        hint=f"the placeholders are {placeholders}; write {{{{ and }}}} for braces",
    )


def _check_prompt(prompt: str, program: str) -> None:
    """Raise InvalidInput if the prompt cannot be passed as an argument."""
    use_stdin = "remove {prompt} from the command: the prompt then goes to the program's stdin"
    if (size := len(prompt.encode())) > MAX_PROMPT_BYTES:
        raise InvalidInput(
            f"a prompt of {size} bytes is too long for an argument", hint=use_stdin, limit=MAX_PROMPT_BYTES
        )
    if "\0" in prompt:
        raise InvalidInput("an argument cannot contain the NUL character", hint=use_stdin)
    if program.lower().endswith((".bat", ".cmd")):
        # Windows passes the arguments of a batch file to its shell, which would run commands in them.
        raise InvalidInput("a batch file cannot take the prompt as an argument", hint=use_stdin)

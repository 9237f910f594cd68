"""Random settings files: a project's file never widens anything, and no file ends in a traceback."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, cast

from retinue.config import load_settings, setting_values
from retinue.config.setting_rows import SettingRow, setting_rows
from retinue.config.settings import Settings
from retinue.core import ConfigInvalid

NAME = "settings"

MEMORY = Path("/dev/shm")
FOLDER = Path(tempfile.mkdtemp(prefix="fuzz-", dir=MEMORY if MEMORY.is_dir() else None)).resolve()
PROJECT, USER = FOLDER / "project" / "retinue.toml", FOLDER / "user.toml"
PROJECT.parent.mkdir()
(PROJECT.parent / "out").symlink_to("/")
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)

KEYS = tuple(setting_rows())
TEXTS = (
    "",
    ".",
    "..",
    "/",
    "~",
    "out",
    "out/etc",
    "docs",
    "all",
    "core",
    "debug",
    "a\\u0000b",
    "x" * 300,
    "\\uD800",
)
PATHS = (".", "docs", "docs/../x", "..", "/", "~", "out", "out/etc", "/etc", "a/../../b", "~nobody-here/x")
WORDS = ("x", "main", "http://127.0.0.1:1/v1", "**/*.sql", "all", "a b")
TOKENS = (
    "[",
    "]",
    "[[",
    "]]",
    "{",
    "}",
    "=",
    ".",
    ",",
    "'",
    '"',
    "'''",
    '"""',
    "#",
    "\n",
    "\r\n",
    "\0",
    " ",
    "\ufeff",
)


@cache
def _defaults(home: Path) -> dict[str, Any]:
    """The default values in this home directory, which some of them depend on."""
    assert home == Path.home()
    return {key: value for key, _, value in setting_values(Settings())}


def run_case(random: Random) -> None:
    """Load a random file as the project's and as the user's own, and check what came of it."""
    text = _document(random)
    try:
        PROJECT.write_text(text, encoding="utf-8")
        USER.write_text(text if random.random() < 0.3 else "", encoding="utf-8")
    except UnicodeEncodeError:
        PROJECT.write_bytes(text.encode("utf-8", "surrogatepass"))
    try:
        loaded = load_settings(directory=PROJECT.parent, user=USER, environment={})
    except ConfigInvalid as error:
        assert len(error.message) < 60_000, "the message is too long"
        return
    user = str(USER)
    for key, row, value in setting_values(loaded.settings):
        assert "*" not in key
        if loaded.origins.get(key) == user:
            continue
        # A table of the user's, whose other keys have their defaults.
        if "." in key and key not in _defaults(Path.home()):
            assert any(origin == user for origin in loaded.origins.values()), f"the project has added {key}"
            continue
        _check_narrow(key, row, value)


def _check_narrow(key: str, row: SettingRow, value: Any) -> None:
    """Fail if a value that the project may have set reaches beyond the default."""
    default = _defaults(Path.home())[key]
    if row.project == "restrict":
        assert value is not True, f"the project has switched on {key}"
    elif row.project in ("ignored", "user_file"):
        assert value == default, f"the project has set {key} = {value!r}"
    elif row.project == "narrow" and isinstance(value, int):
        assert value <= default, f"the project has raised {key} to {value!r}"
    elif row.project == "narrow":
        assert set(value) <= set(default), f"the project has widened {key} to {value!r}"
    elif row.item is Path and value is not None:
        for path in cast("tuple[Path, ...]", value if isinstance(value, tuple) else (value,)):
            assert path.resolve().is_relative_to(PROJECT.parent), f"{key} points outside: {path}"


def _document(random: Random) -> str:
    """A file that is valid more often than not, with values that are right, too large or of another kind."""
    keys = random.sample(KEYS, random.randrange(1, 10))
    text = "\n".join(_line(random, key) for key in keys)
    for _ in range(random.choice((0, 0, 0, 0, 0, 1, 3))):  # damage it
        at = random.randrange(len(text) + 1)
        text = text[:at] + random.choice(TOKENS) + text[at + random.randrange(3) :]
    return text


def _line(random: Random, key: str) -> str:
    if random.random() < 0.005:
        return random.choice(("[", "{", "a.", "[[a]]\n", '"', "a = [")) * random.randrange(1, 3_000)
    spelled = _key(random, key)
    return f"{spelled} = {_fitting_value(random, key) if random.random() < 0.93 else _value(random, 0)}"


def _fitting_value(random: Random, key: str) -> str:
    """A value of the setting's kind."""
    row = setting_rows()[key]
    if row.kind is bool:
        return random.choice(("true", "false"))
    if row.kind is int:
        low, high = row.bounds.get("at_least") or 0, row.bounds.get("at_most") or 2**62
        return str(min(high, max(low, int(10 ** random.uniform(0, 12)))))
    if row.is_table:
        return random.choice(("{}", '{A = "b"}', '{A = "${HOME}", B = ""}'))
    words = row.choices or (PATHS if row.item is Path else WORDS)
    if not row.is_list:
        return f'"{random.choice(words)}"'
    chosen = [f'"{random.choice(words)}"' for _ in range(random.randrange(4))]
    return f"[{', '.join(chosen)}]"


def _key(random: Random, key: str) -> str:
    """The key, at times spelled in another way, or wrongly."""
    key = key.replace("*", random.choice(("x", "y")))
    changes: tuple[Callable[[str], str], ...] = (
        lambda text: text.replace("_", "-"),
        lambda text: text.title().replace("_", ""),
        lambda text: text.rpartition(".")[0] or text,
        lambda text: f"{text}.x",
        lambda text: text.replace(".", " . "),
        lambda text: ".".join(f'"{part}"' for part in text.split(".")),
        lambda text: text[::-1],
    )
    return random.choice(changes)(key) if random.random() < 0.03 else key


def _value(random: Random, depth: int) -> str:
    kind = random.randrange(8 if depth < 3 else 5)
    match kind:
        case 0:
            small = str(random.randrange(-2, 100))
            return random.choice(
                (small, small, "1000000", str(2**63), "1" + "0" * random.randrange(1, 5_000))
            )
        case 1:
            return random.choice(("true", "false", "1.5", "nan", "-inf", "1979-05-27", "0xff", "1e400"))
        case 2 | 3:
            return f'"{random.choice(TEXTS)}"'
        case 4:
            return f"'{random.choice(('docs', 'info', 'core', 'claude', '../x', 'http://a:b@c'))}'"
        case 5 | 6:
            return f"[{', '.join(_value(random, depth + 1) for _ in range(random.randrange(4)))}]"
        case _:
            items = (f"k{each} = {_value(random, depth + 1)}" for each in range(random.randrange(4)))
            return f"{{{', '.join(items)}}}"

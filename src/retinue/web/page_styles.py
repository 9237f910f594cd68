"""Decides by the styles that a page itself contains whether a reader sees an element.

Reads CSS as browsers do where it matters: comments, escapes, nested rules, `@media print`. Does not compute
the layout, fetches no style sheets and follows no variables, so a page can still hide text by other means.
Knows nothing of HTML.
"""

from __future__ import annotations

import colorsys
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

MAX_SHEET_CHARS = 200_000
MAX_RULES = 3_000
MAX_VALUE_CHARS = 300
FAINT = 12
"""By how much a color channel has to differ from the background to be seen, of 255."""
SMALLEST_FONT_PX = 4.0
FAR_PX = 900.0
"""A text that is moved by this much is not on the screen."""
WHITE = (255.0, 255.0, 255.0)

Color = tuple[float, float, float]
Declarations = Mapping[str, str]

_COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)", re.DOTALL)
_ESCAPE = re.compile(r"\\(?:([0-9a-fA-F]{1,6})\s?|(.))", re.DOTALL)
_NOT_ON_SCREEN = re.compile(
    r"@(?:keyframes|-\w+-keyframes|font-face|page|supports\s+not)|@media[^{]*(?:\bprint\b|color-scheme\s*:\s*dark)"
)
_LENGTH = re.compile(r"([-+]?\s*(?:\d+\.?\d*|\.\d+))\s*(px|pt|pc|em|rem|ex|ch|cm|mm|in|vw|vh|vmin|vmax|%)?")
_PX = {
    "px": 1.0, "pt": 1.33, "pc": 16.0, "em": 16.0, "rem": 16.0, "ex": 8.0, "ch": 8.0, "cm": 37.8, "mm": 3.78,
    "in": 96.0, "vw": 12.0, "vh": 9.0, "vmin": 9.0, "vmax": 12.0, "%": 0.16,
}  # fmt: skip
_MOVES = ("left", "top", "right", "bottom", "inset", "margin", "margin-left", "margin-top", "translate")
_NAMED_COLORS: Mapping[str, Color] = {
    "white": WHITE, "snow": (255, 250, 250), "ivory": (255, 255, 240), "ghostwhite": (248, 248, 255),
    "whitesmoke": (245, 245, 245), "floralwhite": (255, 250, 240), "mintcream": (245, 255, 250),
    "azure": (240, 255, 255), "black": (0, 0, 0), "red": (255, 0, 0), "green": (0, 128, 0),
    "blue": (0, 0, 255), "yellow": (255, 255, 0), "gray": (128, 128, 128), "grey": (128, 128, 128),
}  # fmt: skip
_TRANSPARENT = re.compile(
    r"transparent|#(?:[0-9a-f]{3}0|[0-9a-f]{6}0[0-9a-f])|(?:rgb|hsl)a?\(.*[,/]\s*0?\.?0*%?\s*\)"
)
_NO_AREA = re.compile(
    r"rect\(\s*[01](?:px)?[\s,]+[01]|inset\(\s*(?:[5-9]\d|100)(?:\.\d+)?%|circle\(\s*0|polygon\([^)1-9]*\)"
)
_NO_SCALE = re.compile(r"scale[xy3d]*\(\s*0*\.?0*\s*[,)]|rotate[xy]\(\s*-?(?:90|270)deg")


@lru_cache(maxsize=2_000)
def read_declarations(style: str) -> Declarations:
    """Return the declarations of a `style` attribute by property, in lower case."""
    found: dict[str, str] = {}
    for declaration in _plain(style).lower().split(";"):
        name, colon, value = declaration.partition(":")
        if colon:
            found[name.strip()] = " ".join(value[:MAX_VALUE_CHARS].replace("!important", " ").split())
    return found


def read_sheet(text: str) -> Iterator[tuple[str, str]]:
    """Yield the selectors of a style sheet, each with its declarations, also those of nested rules."""
    text = _plain(text[:MAX_SHEET_CHARS]).replace("<!--", " ").replace("-->", " ")
    outer: list[str | None] = [""]  # the selector of each open block; None in a block that is not for screens
    for rules, piece in enumerate(re.finditer(r"([^{}]*)([{}])", text)):
        if rules > 2 * MAX_RULES:
            return
        written, brace = piece[1], piece[2]
        declared, _, prelude = written.rpartition(";") if brace == "{" else (written, "", "")
        if outer[-1] and declared.strip():
            yield outer[-1], declared
        if brace == "{":
            outer.append(_nested(outer[-1], prelude.strip()))
        elif len(outer) > 1:
            outer.pop()


def _nested(outer: str | None, prelude: str) -> str | None:
    """Return the selector that the rules in a block have."""
    if outer is None or _NOT_ON_SCREEN.match(prelude.lower()):
        return None
    if prelude.startswith("@"):
        return outer
    if prelude.count("&") * len(outer) > MAX_SHEET_CHARS:  # blocks in blocks that double their selector
        return None
    if "&" in prelude:
        return prelude.replace("&", outer)
    return f"{outer} {prelude}" if outer else prelude


def can_hide(style: str) -> bool:
    """Return whether a style says anything about what is seen."""
    declared = read_declarations(style)
    return hides(style) or _text_color(declared) is not None or _background(declared) is not None


@lru_cache(maxsize=2_000)
def hides(style: str) -> bool:
    """Return whether an element with a style cannot be seen, whatever is around it."""
    declared = read_declarations(style)
    get = declared.get
    return (
        get("display") == "none"
        or get("visibility") in ("hidden", "collapse")
        or get("content-visibility") == "hidden"
        or _is_faint(get("opacity"))
        or any(map(_is_faint, re.findall(r"opacity\(([^)]*)\)", get("filter", ""))))
        or any(bool(_TRANSPARENT.fullmatch(get(name, ""))) for name in ("color", "-webkit-text-fill-color"))
        or _has_tiny_font(declared)
        or _has_no_area(declared)
        or _is_moved_away(declared)
    )


@dataclass(frozen=True, slots=True)
class Paint:
    """The color of a text and of what is behind it. None if it is not known."""

    color: Color | None = None
    behind: Color | None = WHITE

    def within(self, declared: Declarations) -> Paint:
        """Return the paint of an element inside this one. A background that is a picture is not known."""
        color, behind = _text_color(declared), _background(declared)
        return Paint(color or self.color, self.behind if behind is None else _color_in(behind))

    @property
    def is_readable(self) -> bool:
        if self.color is None or self.behind is None:
            return True
        pairs = zip(self.color, self.behind, strict=True)
        return any(abs(one - other) > FAINT for one, other in pairs)


def _background(declared: Declarations) -> str | None:
    """Return what is behind an element by its own declarations; None if they do not say."""
    found = [
        value
        for name, value in declared.items()
        if name.endswith(("background", "background-color"))
        and value not in ("", "none", "inherit", "initial")
    ]
    return next((each for each in reversed(found) if not _TRANSPARENT.fullmatch(each)), None)


def _text_color(declared: Declarations) -> Color | None:
    return _color(declared.get("-webkit-text-fill-color") or declared.get("color", ""))


def _color_in(behind: str) -> Color | None:
    """Return the color of a background such as `#fff url(x.png)`; None if something else decides."""
    if re.search(r"url\(|gradient\(|var\(", behind) and not re.match(r"#|rgb|hsl|[a-z]+ ", behind):
        return None
    found = re.search(r"#[0-9a-f]{3,8}\b|(?:rgb|hsl)a?\([^)]*\)|^[a-z]+\b", behind)
    return _color(found[0]) if found else None


def _color(written: str) -> Color | None:
    if written in _NAMED_COLORS:
        return _NAMED_COLORS[written]
    if digits := re.fullmatch(r"#([0-9a-f]{3}|[0-9a-f]{6})[0-9a-f]{0,2}", written):
        pairs = re.findall("." if len(digits[1]) == 3 else "..", digits[1])
        red, green, blue = (float(int(pair * (3 - len(pair)), 16)) for pair in pairs)
        return red, green, blue
    parts = re.fullmatch(r"(rgb|hsl)a?\(\s*([\d.]+)(%?)(?:deg)?[\s,]+([\d.]+)%?[\s,]+([\d.]+)%?.*\)", written)
    if not parts:
        return None
    one, two, three = float(parts[2]), float(parts[4]), float(parts[5])
    if parts[1] == "rgb":
        scale = 2.55 if parts[3] else 1.0
        return one * scale, two * scale, three * scale
    red, green, blue = colorsys.hls_to_rgb(one / 360 % 1, min(three, 100) / 100, min(two, 100) / 100)
    return red * 255, green * 255, blue * 255


def _plain(css: str) -> str:
    """Return CSS without comments, with escapes as the characters that they mean."""

    def character(escape: re.Match[str]) -> str:
        code = int(escape[1], 16) if escape[1] else 0
        return escape[2] or (chr(code) if 31 < code < 0x110000 else "")

    return _ESCAPE.sub(character, _COMMENT.sub(" ", css))


def _is_faint(written: str | None) -> bool:
    found = re.fullmatch(r"(\d*\.?\d+)(%?)", written or "")
    return bool(found) and float(found[1]) / (100 if found[2] else 1) <= 0.1


def _pixels(written: str) -> list[float]:
    """Return the lengths in a value, roughly in pixels. A number without a unit counts as pixels."""
    return [
        float(number.replace(" ", "").replace("+", "") or 0) * _PX.get(unit, 1.0)
        for number, unit in _LENGTH.findall(written)
    ]


def _has_tiny_font(declared: Declarations) -> bool:
    size = declared.get("font-size", "")
    if not size and (
        font := re.match(r"(?:[a-z]+\s+)*([\d.]+(?:px|pt|em|rem|%)?)(?:/|\s)", declared.get("font", ""))
    ):
        size = font[1]
    lengths = _pixels(size) if re.match(r"[\d.]", size) else []
    return bool(lengths) and lengths[0] < SMALLEST_FONT_PX


def _has_no_area(declared: Declarations) -> bool:
    if any(map(_NO_AREA.search, (declared.get("clip", ""), declared.get("clip-path", "")))):
        return True
    if _NO_SCALE.search(declared.get("transform", "")) or re.match(
        r"0*\.?0+(?:\s|$)", declared.get("scale", "")
    ):
        return True
    is_cut = any(
        declared.get(name, "") in ("hidden", "clip") for name in ("overflow", "overflow-x", "overflow-y")
    )
    sizes = (
        _pixels(declared.get(name, ""))
        for name in ("height", "width", "max-height", "max-width", "line-height")
    )
    return any(size and size[0] <= (1.0 if is_cut else 0.0) for size in sizes)


def _is_moved_away(declared: Declarations) -> bool:
    moves = [declared.get(name, "") for name in _MOVES]
    moves += re.findall(r"translate[xy3d]*\(([^)]*)\)", declared.get("transform", ""))
    if any(abs(length) >= FAR_PX for move in moves for length in _pixels(move)):
        return True
    indents = _pixels(declared.get("text-indent", ""))
    if indents and (indents[0] <= -100 or declared.get("text-indent", "").endswith(("100%", "101%", "110%"))):
        return True
    return declared.get("position", "static") != "static" and declared.get("z-index", "").startswith("-")

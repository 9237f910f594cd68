"""Records which functions of a package run, on which stacks, and which transactions they write.

Works from the outside, so that the traced code can be renamed freely: a profile function sees every call,
audit events show files that are opened, and SQLite reports the statements that it executes. Stacks go on
across the start of an asyncio task, a worker thread or a callback: the stack of whoever started it comes
first. Sees this process alone, not the programs that it starts.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import re
import sqlite3
import sys
import threading
import weakref
from collections.abc import Callable, Collection, Coroutine, Generator, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType, MethodType
from typing import Any, NamedTuple, cast

import anyio.to_thread

STARTERS: Mapping[CodeType, str] = {
    anyio.to_thread.run_sync.__code__: "thread",
    ThreadPoolExecutor.submit.__code__: "thread",
    threading.Thread.start.__code__: "thread",
    asyncio.BaseEventLoop.run_in_executor.__code__: "thread",
    asyncio.BaseEventLoop.call_soon.__code__: "callback",
    asyncio.BaseEventLoop.call_soon_threadsafe.__code__: "callback",
    asyncio.BaseEventLoop.call_at.__code__: "callback",
}
"""Functions whose arguments are called later, elsewhere."""
WRITES = re.compile(r"(INSERT (?:OR \w+ )?INTO|UPDATE|DELETE FROM|REPLACE INTO|DROP \w+|CREATE \w+) (\w+)")


class Handover(NamedTuple):
    """Two methods of the package: what the first one gets as its argument is work that the second one does.

    The second runs in another thread, which takes work from a queue. Its stack then goes on with the stack of
    the first one. Both are written as `module:qualified_name`.
    """

    puts: str
    takes: str


class Entered(NamedTuple):
    """One activation of a function of the package."""

    frame: FrameType
    module: str
    """Its file inside the package, without the suffix: `runtime/pool`."""
    function: str
    start: str
    """`task`, `thread` or `callback` if it does not run on its caller's stack; else empty."""

    @property
    def name(self) -> str:
        return self.function.rsplit(".", 1)[-1]


Stack = tuple[Entered, ...]
"""From the outermost function to the innermost."""


@dataclass(frozen=True)
class Landmark:
    """A moment of a walk that its path leads to. The first pattern given decides what kind of event it is."""

    name: str
    sql: str | None = None
    """Searched for in each SQL statement."""
    opened: str | None = None
    """Searched for in the mode and the name of each file that is opened: `w report.json`."""
    called: str | None = None
    """Has to match `module:qualified_name` of a Python function, the standard library's too."""
    given: str = ""
    """With `called`: searched for in the arguments."""
    directly: bool = False
    """Whether it counts only on the stack of the request itself, not in a task or thread started by it."""
    pick: int = 0
    """Which of the moments of a stage: 0 is the first, -1 the last."""


@dataclass
class Transaction:
    """One write transaction, or a single statement that writes outside of one."""

    database: str
    """The name of the file."""
    stack: Stack
    statements: list[str] = field(default_factory=list[str])

    @property
    def writer(self) -> str:
        """The last functions before the room that executes the statements."""
        room = self.stack[-1].module.split("/")[0] if self.stack else ""
        before = [one for one in self.stack if one.module.split("/")[0] != room][-1:]
        within = [one for one in self.stack if one.module.split("/")[0] == room][-2:-1]
        return " > ".join(f"{one.module}.{one.function}" for one in (*before, *within))


@dataclass
class Stage:
    """What was recorded in one part of a walk."""

    name: str
    functions: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    moments: dict[str, list[tuple[int, Stack]]] = field(default_factory=dict[str, list[tuple[int, Stack]]])
    """Stacks by landmark, each with a number that grows in time."""
    transactions: list[Transaction] = field(default_factory=list[Transaction])


class CallTracer:
    """`with CallTracer(package) as tracer`, then `with tracer.stage("name", landmarks) as stage`."""

    def __init__(
        self, package: Path, handovers: Sequence[Handover] = (), starters: Collection[str] = ()
    ) -> None:
        """`starters` are functions of the package that only start threads; stacks leave them out."""
        self._starters = starters
        self._package = f"{package.resolve()}/"
        self._puts = {one.puts for one in handovers}
        self._takes = {one.takes for one in handovers}
        self._handed_over: dict[int, tuple[object, Stack]] = {}
        self._labels: dict[CodeType, str | None] = {}
        self._origins: weakref.WeakKeyDictionary[asyncio.Task[Any], Stack] = weakref.WeakKeyDictionary()
        self._started: dict[CodeType, tuple[str, Stack]] = {}
        self._databases: dict[int, str] = {}
        self._opening: list[tuple[sqlite3.Connection, str]] = []
        self._writing: dict[int, Transaction] = {}
        self._stage: Stage | None = None
        self._landmarks: Sequence[Landmark] = ()
        self._called: dict[CodeType, list[Landmark]] = {}
        self._resumable: set[FrameType] = set()
        self._count = 0
        self._looks_at: Callable[[object], None] | None = None
        self._last_executed: tuple[FrameType | None, int, str] | None = None
        self._is_on = False

    def __enter__(self) -> CallTracer:
        self._is_on = True
        sys.addaudithook(self._audit)
        threading.setprofile(self._profile)
        sys.setprofile(self._profile)
        return self

    def __exit__(self, *_: object) -> None:
        self._is_on = False  # an audit hook cannot be taken out
        sys.setprofile(None)
        threading.setprofile(None)  # pyright: ignore[reportArgumentType]

    def follow_tasks(self) -> None:
        """In the running event loop; call it before anything else there."""
        asyncio.get_running_loop().set_task_factory(cast("Any", self._new_task))

    @contextmanager
    def stage(
        self, name: str, landmarks: Sequence[Landmark], looks_at: Callable[[object], None] | None = None
    ) -> Generator[Stage]:
        """`looks_at` is given each argument of each function of the package."""
        stage = Stage(name)
        self._landmarks, self._looks_at, self._called = landmarks, looks_at, {}
        self._stage = stage
        try:
            yield stage
        finally:
            self._stage = self._looks_at = None

    def _new_task(
        self, loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, Any], **more: Any
    ) -> asyncio.Task[Any]:
        task: asyncio.Task[Any] = asyncio.Task(work, loop=loop, **more)
        self._origins[task] = self._stack(inspect.currentframe())
        return task

    def _profile(self, frame: FrameType, event: str, _: object) -> None:
        if self._opening:
            self._watch_connections()
        if event != "call":
            return
        code = frame.f_code
        if code in STARTERS:
            self._remember_start(frame)
        elif self._label(code) is not None and _name_of(frame) in self._puts:
            work = _arguments(frame)[-1]
            self._handed_over[id(work)] = work, self._stack(frame)
        if self._stage is None:
            return
        if self._label(code) is not None:
            self._enter(frame, self._stage)
        called = self._called.get(code)
        if called is None:
            called = self._called[code] = [one for one in self._landmarks if _is_call_of(one, frame)]
        for landmark in called:
            if frame not in self._resumable and _is_given(landmark, frame):
                self._resumable.add(frame)  # a coroutine is entered again each time it goes on
                self._reached(landmark, frame)

    def _enter(self, frame: FrameType, stage: Stage) -> None:
        code = frame.f_code
        if code.co_name.startswith("<") and code.co_name != "<lambda>":
            return  # a module or a comprehension
        if not code.co_flags & inspect.CO_OPTIMIZED:
            return  # the body of a class
        name = (self._label(code) or "", code.co_qualname)
        if name not in stage.functions and not _is_importing(frame):
            stage.functions.add(name)
        if self._looks_at is not None:
            for value in _arguments(frame):
                self._looks_at(value)

    def _label(self, code: CodeType) -> str | None:
        """The module inside the package; None for a function from elsewhere."""
        if code not in self._labels:
            inside = code.co_filename.startswith(self._package)
            name = code.co_filename.removeprefix(self._package).removesuffix(".py")
            self._labels[code] = name.removesuffix("/__init__") if inside else None
        return self._labels[code]

    def _stack(self, innermost: FrameType | None) -> Stack:
        own: list[Entered] = []
        codes: list[CodeType] = []
        frame = innermost
        while frame is not None:
            code = frame.f_code
            codes.append(code)
            is_path = not _is_comprehension(code) and _name_of(frame) not in self._starters
            if (module := self._label(code)) is not None and is_path:
                own.append(Entered(frame, module, code.co_qualname, ""))
                if _name_of(frame) in self._takes and (handed := self._handed(frame)):
                    return (*handed, own.pop()._replace(start="thread"), *reversed(own))
            frame = frame.f_back
        own.reverse()
        start, before = self._origin(codes)
        if own and before:
            own[0] = own[0]._replace(start=start)
        return (*before, *own)

    def _handed(self, frame: FrameType) -> Stack:
        taken = _arguments(frame)[-1]
        work, stack = self._handed_over.get(id(taken), (None, ()))
        return stack if work is taken else ()

    def _origin(self, codes: Sequence[CodeType]) -> tuple[str, Stack]:
        with suppress(RuntimeError):
            if task := asyncio.current_task():
                return "task", self._origins.get(task, ())
        for code in reversed(codes):
            if code in self._started:
                return self._started[code]
        return "", ()

    def _remember_start(self, frame: FrameType) -> None:
        codes = [code for value in _arguments(frame) for code in _codes(value)]
        own = [code for code in codes if self._label(code) is not None]
        if own:
            stack = self._stack(frame)
            for code in own:
                self._started[code] = (STARTERS[frame.f_code], stack)

    def _reached(self, landmark: Landmark, frame: FrameType | None) -> None:
        if self._stage is not None:
            stack = self._stack(frame)
            if landmark.directly and any(one.start for one in stack):
                return
            self._count += 1
            self._stage.moments.setdefault(landmark.name, []).append((self._count, stack))

    def _audit(self, event: str, given: tuple[Any, ...]) -> None:
        if not self._is_on:
            return
        if event == "sqlite3.connect":
            self._databases[threading.get_ident()] = Path(str(given[0])).name
        elif event == "sqlite3.connect/handle":
            self._opening.append((given[0], self._databases[threading.get_ident()]))
        elif event == "open" and self._stage is not None:
            name, mode, flags = given
            writes = isinstance(flags, int) and flags & 3 != 0
            opened = f"{mode or ('w' if writes else 'r')} {name}"
            for landmark in self._landmarks:
                if landmark.opened is not None and re.search(landmark.opened, opened):
                    self._reached(landmark, inspect.currentframe())

    def _watch_connections(self) -> None:
        """A connection takes a callback only after it has been opened, in the thread that opened it."""
        for opened in tuple(self._opening):
            connection, name = opened
            with suppress(sqlite3.ProgrammingError):
                connection.set_trace_callback(functools.partial(self._executed, id(connection), name))
                self._opening.remove(opened)

    def _executed(self, connection: int, database: str, sql: str) -> None:
        stage, own = self._stage, inspect.currentframe()
        frame = own.f_back if own else None
        executed = (frame, frame.f_lasti if frame else 0, sql)
        if stage is None or executed == self._last_executed:  # a trigger's part of the same statement
            return
        self._last_executed = executed
        for landmark in self._landmarks:
            if landmark.sql is not None and re.search(landmark.sql, sql):
                self._reached(landmark, frame)
        verb = sql.split(maxsplit=1)[0].upper() if sql.strip() else ""
        if verb == "BEGIN":
            self._writing[connection] = Transaction(database, self._stack(frame))
            stage.transactions.append(self._writing[connection])
        elif verb in ("COMMIT", "ROLLBACK", "END"):
            self._writing.pop(connection, None)
        elif (writes := WRITES.match(sql)) is not None:
            statement = f"{writes[1].split()[0]} {writes[2]}"
            if connection in self._writing:
                self._writing[connection].statements.append(statement)
            else:
                stage.transactions.append(Transaction(database, self._stack(frame), [statement]))


def _is_call_of(landmark: Landmark, frame: FrameType) -> bool:
    if landmark.called is None:
        return False
    return re.fullmatch(landmark.called, _name_of(frame)) is not None


def _name_of(frame: FrameType) -> str:
    return f"{frame.f_globals.get('__name__')}:{frame.f_code.co_qualname}"


def _is_given(landmark: Landmark, frame: FrameType) -> bool:
    return not landmark.given or any(re.search(landmark.given, repr(value)) for value in _arguments(frame))


def _is_comprehension(code: CodeType) -> bool:
    return code.co_name.startswith("<") and code.co_name != "<lambda>"


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_name == "<module>" and frame.f_globals.get("__name__") != "__main__":
            return True
        frame = frame.f_back
    return False


def _arguments(frame: FrameType) -> list[object]:
    code = frame.f_code
    count = code.co_argcount + code.co_kwonlyargcount
    count += bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    return [frame.f_locals[name] for name in code.co_varnames[:count] if name in frame.f_locals]


def _codes(value: object, depth: int = 4) -> Iterable[CodeType]:
    """The code of the functions in a value that is to be called: functions, methods, partials, threads."""
    if depth == 0:
        return
    if isinstance(value, functools.partial):
        partial = cast("functools.partial[object]", value)
        for each in (partial.func, *partial.args):
            yield from _codes(each, depth - 1)
    elif isinstance(value, MethodType):
        yield from _codes(value.__func__, depth - 1)
    elif isinstance(value, threading.Thread):
        yield from _codes(getattr(value, "_target", None), depth - 1)
    elif isinstance(value, tuple | list):
        for each in cast("Sequence[object]", value):
            yield from _codes(each, depth - 1)
    elif isinstance(code := getattr(value, "__code__", None), CodeType):
        yield code

"""Versions of operated code: every surgery that was applied is one; listed, shown as a diff, taken back.

A version is text, and native code to go back to: no frame, exception or value of the run is kept alive by it.
"""

from __future__ import annotations

import datetime
import threading
import weakref
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from types import CodeType, FunctionType

from daifu_ipy.engine.documents import Document
from daifu_ipy.engine.functions import Functions
from daifu_ipy.engine.location import Location
from daifu_ipy.engine.native import barrier_in, native_code
from daifu_ipy.engine.repairs import Refusal
from daifu_ipy.engine.splicing import edits_of, splice
from daifu_ipy.engine.swap import Swap, surroundings
from daifu_ipy.engine.texts import text_of
from daifu_ipy.engine.unit import FunctionNode, NestedFunction, Unit
from daifu_ipy.engine.vaccinate import CannotVaccinate, find_function, is_vaccinated, parse, vaccinated

lock = threading.RLock()
"""Held while a surgery is made and applied: its file name has the number that it gets."""


class VersionError(ValueError):
    """There is no such version, or it can't be taken back; says why."""


@dataclass(frozen=True)
class Version:
    """A surgery that was applied.

    Parameters
    ----------
    number
        The first one of a process is 1.
    unit
        The qualified name of the crashed unit.
    file
        The file, or the file name of the notebook cell, that the unit's text stands in.
    filename
        The name of the new text in `linecache`, as tracebacks show it.
    source
        The new text, as it was typed.
    replaced
        The qualified names of the functions that run the new text (``<module>``: a notebook cell's own code).
    files
        All files and cells whose text it changes.
    line, statement
        Where the run went on, in the text that `filename` has in `linecache`.
    time
        ISO 8601, with the offset from UTC.
    reverted
        Whether it was taken back.
    note
        Why a diff leaves something out.
    """

    number: int
    unit: str
    file: str
    filename: str
    source: str
    replaced: tuple[str, ...]
    files: tuple[str, ...]
    line: int
    statement: str
    time: str
    reverted: bool = False
    note: str = ""


@dataclass(frozen=True)
class Reverted:
    """What `revert` did: the version, the functions that run the older code now, and why others don't."""

    version: Version
    functions: tuple[str, ...]
    left: tuple[str, ...]


@dataclass(frozen=True)
class Replaced:
    """Functions of one definition: the native code and text that they had, and what they got instead."""

    name: str
    file: str
    ordinal: int
    old: CodeType
    new: CodeType
    source: str
    functions: tuple[weakref.ref[FunctionType], ...] = ()
    old_node: FunctionNode | None = None
    new_node: NestedFunction | None = None
    free: tuple[str, ...] = ()


_versions: list[Version] = []
_replaced: dict[int, tuple[Replaced, ...]] = {}
_documents: list[Document] = []  # of one file, the last one holds


# what there is


def all() -> tuple[Version, ...]:
    """Every version, oldest first."""
    return tuple(_versions)


def version_of(filename: str) -> Version | None:
    """The version whose text a file name stands for."""
    return next((version for version in _versions if version.filename == filename), None)


def get(number: int | None = None) -> Version:
    """A version by its number; without one, the newest that was not taken back.

    Raises
    ------
    VersionError
        There is none.
    """
    found = [v for v in _versions if (not v.reverted if number is None else v.number == number)]
    if not found:
        raise VersionError("no surgery was made" if number is None else f"there is no surgery {number}")
    return found[-1]


def holding(number: int | None = None) -> set[int]:
    """What counts as of a version (see `get`): it, and those before it that were not taken back."""
    last = get(number).number
    return {v.number for v in _versions[:last] if v.number == last or not v.reverted}


def documents(number: int | None = None) -> list[Document]:
    """The texts that a version changes; without a number, those that any version that holds changes."""
    meant = {v.number for v in _versions if not v.reverted} if number is None else {number}
    return [document for document in _documents if meant & document.edits.keys()]


def clear() -> None:
    """Forget everything; what runs goes on as it is."""
    with lock:
        for held in (_versions, _replaced, _documents):
            held.clear()


# recording


def new_filename(filename: str) -> str:
    """The file name for the text of the next surgery, of a unit in `filename`."""
    root = root_of(filename)
    return f"<daifu surgery {len(_versions) + 1} of {root.strip('<>')}>"


def root_of(filename: str) -> str:
    """The file or cell that the text of a surgery belongs to; of another file, itself."""
    version = version_of(filename)
    return filename if version is None else version.file


def record(unit: Unit, swaps: Iterable[Swap], source: str, filename: str, went_on: tuple[Location, Unit]) -> Version:
    """Keep a surgery that is about to be applied: the functions still have the code that they are to lose."""
    location, new = went_on
    every = [replaced for swap in swaps for replaced in _replaced_by(swap)]
    made = [one for one in every if one.old.co_filename != filename]  # others are new: they have replaced nothing
    if new is not unit and unit.qualname not in {one.name for one in made}:  # a notebook cell; a function that is gone
        made.append(Replaced(unit.qualname, *_origin(unit.plain, unit.qualname), unit.plain, new.plain, unit.source))
    files = dict.fromkeys(one.file for one in made)
    version = Version(
        number=len(_versions) + 1,
        unit=unit.qualname,
        file=root_of(unit.plain.co_filename),
        filename=filename,
        source=source,
        replaced=tuple(dict.fromkeys(one.name for one in made)),
        files=tuple(files),
        line=location.statement.lineno,
        statement=new.text(location.statement),
        time=datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
    )
    _versions.append(version)
    _replaced[version.number] = tuple(made)
    for name in files:
        elsewhere = frozenset(one.name for one in made if one.file != name)
        _edit(version, name, [one for one in made if one.file == name], elsewhere)
    return get(version.number)


def _replaced_by(swap: Swap) -> Iterator[Replaced]:
    """The functions of a swap by the code that they run."""
    by_code: dict[int, list[FunctionType]] = {}  # hashing code would read all of it
    for function in swap.functions:
        by_code.setdefault(id(function.__code__), []).append(function)
    for functions in by_code.values():
        code = functions[0].__code__
        barrier, old = barrier_in(code), native_code(code)
        source = text_of(old.co_filename) if barrier is None else barrier.unit.source
        held, new = tuple(weakref.ref(function) for function in functions), native_code(swap.code)
        place = _origin(old, swap.name)
        yield Replaced(swap.name, *place, old, new, source, held, swap.old, swap.new, code.co_freevars)


def _origin(code: CodeType, name: str) -> tuple[str, int]:
    """The file that a function's text stands in, and which of its namesakes there it is."""
    before = version_of(code.co_filename)
    if before is not None:
        known = [one for one in _replaced[before.number] if one.name == name]
        return (known[0].file, known[0].ordinal) if known else (before.file, 0)
    try:
        return code.co_filename, 0 if name == "<module>" else find_function(code).ordinal
    except CannotVaccinate:
        return code.co_filename, 0


def _edit(version: Version, file: str, replaced: list[Replaced], elsewhere: frozenset[str]) -> None:
    """Note what a version changes in the text of a file; nothing, where that can't be told."""
    document = _document(file, replaced)
    names = {one.name: one.ordinal for one in replaced}
    try:
        text = document.text(holding(version.number))
        edits = edits_of(text, version.source, names, version.unit, elsewhere - names.keys())
        parse(splice(text, edits))
    except Exception as error:  # the run is about to be saved: nothing here may stand in its way
        note = f"{document.name}: the new text can't be put there: {error}"
        _versions[version.number - 1] = replace(get(version.number), note=note)
        return
    if edits:
        document.edits[version.number], document.replaced[version.number] = edits, list(names.items())


def _document(file: str, replaced: list[Replaced]) -> Document:
    """The document of a file; a new one where the file was loaded again with another text."""
    known = next((document for document in reversed(_documents) if document.file == file), None)
    direct = [one for one in replaced if one.old.co_filename == file]
    text = direct[0].source if direct else text_of(file)
    if known is None or (direct and text != known.original):
        known = Document(file, text)
        _documents.append(known)
    return known


# showing


def diff(number: int | None = None) -> str:
    """A unified diff from what the user has to a version, as ``patch -p0`` takes it.

    Parameters
    ----------
    number
        The version; without one, the newest text of all that was operated on.

    Returns
    -------
    str
        The file on disk, or the notebook cell as it was run, against the same with the surgery's text in it. Where
        that text was changed since, the text that crashed stands for it. "" if the files have the text already.

    Raises
    ------
    VersionError
        There is no such version.
    """
    held = holding(number)
    return "".join(document.diff(held) for document in documents(number))


# taking back


def revert(number: int | None = None) -> Reverted:
    """Give functions the code back that they had before a surgery; calls that run end with what they have.

    Parameters
    ----------
    number
        The version; without one, the newest that was not taken back.

    Raises
    ------
    VersionError
        There is no such version, it was taken back before, or a later one was made of the same functions.
    """
    with lock:
        version = get(number)
        if version.reverted:
            raise VersionError(f"surgery {version.number} was reverted already")
        _check_newest(version)
        functions, left, known = [], [], Functions()
        for one in _replaced[version.number]:
            done, reasons = _give_back(one, known.with_code(one.new))
            functions += [one.name] if done else []
            left += reasons
        _versions[version.number - 1] = replace(version, reverted=True)
        return Reverted(get(version.number), tuple(dict.fromkeys(functions)), tuple(left))


def _check_newest(version: Version) -> None:
    for later in _versions[version.number :]:
        again = sorted(set(later.replaced) & set(version.replaced)) if not later.reverted else []
        if again and set(later.files) & set(version.files):
            raise VersionError(f"surgery {later.number} has replaced {', '.join(again)} since: revert that one first")


def _give_back(one: Replaced, running: list[FunctionType]) -> tuple[int, list[str]]:
    """How many functions run their older code again, and why others don't."""
    if one.name == "<module>":
        return 0, ["the notebook cell's own code: it runs once, and is not called again"]
    held = [function for ref in one.functions if (function := ref()) is not None]
    same = [function for function in held if native_code(function.__code__) is one.new]
    functions = list({id(function): function for function in (*same, *running)}.values())
    if not functions:
        return 0, [f"{one.name}: {'it runs other code by now' if held else 'it does not exist any more'}"]
    left = []
    for function in functions:
        try:
            _swap_back(one, function).apply()
        except Refusal as reason:
            left.append(f"{one.name}: {reason}")
    return len(functions) - len(left), left


def _swap_back(one: Replaced, function: FunctionType) -> Swap:
    """What gives a function its older text again: a default that was changed is evaluated anew."""
    code, namespace = _older(one, function), function.__globals__
    if one.old_node is None or one.new_node is None:
        return Swap(one.name, (function,), code)
    definition = NestedFunction(one.old_node, one.new_node.qualname, one.new_node.class_name)
    around = surroundings(definition, one.source, namespace)
    return Swap(one.name, (function,), code, one.new_node.node, definition, around)


def _older(one: Replaced, function: FunctionType) -> CodeType:
    """The code that a function had, vaccinated if it is vaccinated now."""
    if not is_vaccinated(function):
        return one.old
    try:
        if one.old_node is None or one.new_node is None:
            found = find_function(one.old)
            node, class_name = found.node, found.class_name
        else:
            node, class_name = one.old_node, one.new_node.class_name
        return vaccinated(node, one.old, one.source, function.__globals__, class_name, one.free).code
    except CannotVaccinate:
        return one.old


__all__ = [
    "Reverted", "Version", "VersionError", "all", "clear", "diff", "get", "record", "revert", "version_of",
]  # fmt: skip

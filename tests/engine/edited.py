"""Mechanical edits whose meaning is known: a program is crashed, edited by surgery, and compared with a plain program.

The plain program holds both texts, and ``new()`` in it tells which one counts: the old one before the crash point, the
new one behind it. That is what a surgery at the crashed statement has to come to.
"""

from __future__ import annotations

import ast
import copy
import random
import re
from contextlib import nullcontext
from unittest import mock

import daifu_ipy
from daifu_ipy import Surgery, testing
from daifu_ipy.crash_points import World
from daifu_ipy.engine.repairs import Refusal
from daifu_ipy.engine.unit import LOOPS, blocks
from daifu_ipy.testing import InjectedCrash

ENTRY = r"(<daifu surgery [^>]*>|<call>|[\w.<>]+:\d+)"
LINES = re.compile(f" at {ENTRY}(, {ENTRY})*")
"""Where a traceback has been."""


class BothTexts(World):
    """``new()`` is true from crash point `turns` on."""

    turns = 0

    def __init__(self, crashes):
        super().__init__(crashes)
        turns = self.turns
        self.helpers |= {"nullcontext": nullcontext, "new": lambda: len(self.trail) >= turns}


def parsed(text):
    return ast.parse(text).body


def when_new(yes, no=()):
    return ast.If(ast.parse("new()", mode="eval").body, list(yes) or [ast.Pass()], list(no))


# -- edits: each gives the new statements in place of one, and those of the plain program; None where it is no edit


def inserted(statement):
    added = parsed("note('inserted')")
    return [*added, statement], [when_new(added), statement]


def deleted(statement):
    if not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)):
        return None
    return [ast.Pass()], [when_new([], [statement])]


def wrapped(text, may_hold_jumps=True):
    """A wrapper that changes nothing by itself."""

    def edit(statement):
        if not may_hold_jumps and holds_jumps(statement):
            return None
        around = parsed(text)[0]
        around.body[0] = statement
        return [around], [statement]

    return edit


def unwrapped(text, may_hold_jumps=True):
    """The other way round: the wrapper is there at first."""

    def edit(statement):
        both = wrapped(text, may_hold_jumps)(statement)
        return None if both is None else (both[1], both[1], both[0])

    return edit


def holds_jumps(statement):
    """A ``break`` or ``continue`` in it acts on a loop around it."""
    if isinstance(statement, ast.Break | ast.Continue):
        return True
    return any(
        holds_jumps(inner)
        for block in blocks(statement)
        if not (isinstance(statement, LOOPS) and block.field == "body")
        for inner in block.statements
    )


WRAPPERS = {
    "if": ("if True: pass", True),
    "try": ("try: pass\nexcept ZeroDivisionError: pass", True),
    "try-finally": ("try: pass\nfinally: 0", True),
    "try-try": ("try:\n pass\nexcept ZeroDivisionError: pass\nexcept OverflowError: pass", True),
    "loop": ("while True:\n pass\n break", False),
    "with": ("with nullcontext(): pass", True),
}
EDITS = (
    {"inserted": inserted, "deleted": deleted}
    | {f"wrapped in {name}": wrapped(*row) for name, row in WRAPPERS.items()}
    | {f"unwrapped from {name}": unwrapped(*row) for name, row in WRAPPERS.items()}
)


def places(node):
    """The lists of statements of a unit, with the index of each statement that an edit may be about."""
    found = []

    def visit(statements):
        for index, statement in enumerate(statements):
            is_probe = isinstance(statement, ast.Expr) and ast.unparse(statement).startswith(("at(", "final("))
            is_text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
            if not (is_probe or is_text or isinstance(statement, ast.Global | ast.Nonlocal)):
                found.append((statements, index))
            for block in blocks(statement):
                visit(block.statements)

    visit(node.body)
    return found


class Edited:
    """A program, one edit of one of its statements, and what the engine is told to do with it."""

    def __init__(self, program, edit, place):
        self.program = program
        first, new, both = (ast.parse(program.text) for _ in range(3))
        units = [unit_of(tree, program.kind) for tree in (first, new, both)]
        trees = [places(unit)[place] for unit in units]
        self.statement = ast.unparse(trees[0][0][trees[0][1]])
        made = edit(copy.deepcopy(trees[0][0][trees[0][1]]))
        self.is_one = made is not None
        if made is None:
            return
        for (statements, index), replacement in zip(trees[1:], made, strict=False):
            statements[index : index + 1] = replacement
        self.new = ast.unparse(ast.fix_missing_locations(units[1]))
        self.both = ast.unparse(ast.fix_missing_locations(both))
        self.old = program.text
        if len(made) == 3:
            statements, index = trees[0]
            statements[index : index + 1] = made[2]
            self.old = ast.unparse(ast.fix_missing_locations(first))


def unit_of(tree, kind):
    if kind == "notebook cell":
        return tree
    scope = tree.body[0].body if kind == "method" else tree.body
    return next(
        node for node in scope if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == "f"
    )


def with_text(program, text):
    made = testing._Program(program.source, program.kind, program.target, program.call, program.drive)
    vars(made)["text"] = text
    return made


class Operator:
    """Answers the first injected crash by surgery where its meaning is known, all others by `Pass`."""

    def __init__(self, edited, name, random):
        self.edited, self.name, self.random = edited, name, random
        self.done = None
        self.asked = 0

    def __call__(self, run, _, crash):
        if not isinstance(crash.exception, InjectedCrash):
            return testing_answer(run, daifu_ipy.Pass(), crash)
        run.interceptions.append(f"{crash.restart} {self.done or ''} {crash.refusal or ''}")
        self.asked += 1
        if self.asked > 1 or crash.restart.unit.split(".")[-1] not in ("f", "<module>"):
            return daifu_ipy.Pass()
        self.done = self.choice(crash)
        return daifu_ipy.Pass() if self.done is None else self.done

    def choice(self, crash):
        """At the crash, or where it does not run again what has run."""
        text = self.edited.new
        if self.name == "deleted" and crash.restart.statement.strip() == self.edited.statement.strip():
            return None
        try:
            crash.preview(text, "crash")
            at_crash = True
        except Refusal:
            at_crash = False
        try:
            default = crash.preview(text)
        except Refusal:
            default = None
        repeats = set(default.choices[0].repeats) if default is not None else {None}
        is_plain = repeats <= {" ".join(crash.restart.statement.split()), *crash.repeats} and self.name != "inserted"
        named = default is not None and default.choices[0].restart_at == "crash"
        if default is not None and (named or is_plain) and (not at_crash or self.random.random() < 0.5):
            return Surgery(text)
        return Surgery(text, restart_at="crash") if at_crash else None


testing_answer = testing._answer


def expect_edited(source, edit, place, crash, seed=0, **unit):
    """Check one edit of one statement after one crash. Whether a surgery was made."""
    program = testing._Program(source, **unit)
    edited = Edited(program, EDITS[edit], place)
    if not edited.is_one:
        return False
    operator = Operator(edited, edit, random.Random(seed))
    with (
        mock.patch.object(testing, "World", type("World", (BothTexts,), {"turns": crash})),
        mock.patch.object(testing, "_answer", operator),
    ):
        old = with_text(program, edited.old)
        run = testing._run(old, (crash,), daifu_ipy.Pass())
        if operator.done is None:
            return False
        plain = testing._run(with_text(program, edited.both))
    for each in (run, plain):  # the texts have other lines
        each.log[:] = [LINES.sub("", line) for line in each.log]
        each.raised = LINES.sub("", each.raised)
    call = f"expect_edited({source!r}, {edit!r}, {place}, {crash}, {seed}{''.join(f', {k}={v!r}' for k, v in unit.items())}))"
    try:
        testing._compare(call, old, (crash,), plain, run, len(run.interceptions))
    except AssertionError as error:
        raise AssertionError(f"{error}\n{operator.done.restart_at}\n{edited.new}") from None
    return True


def sample(source, seed, count, **unit):
    """Edits of a program, crashed somewhere: `count` of them, chosen by chance."""
    chance = random.Random(seed)
    program = testing._Program(source, **unit)
    number = len(places(unit_of(ast.parse(program.text), program.kind)))
    points = len(testing._run(program).trail)
    for _ in range(count if number and points else 0):
        yield chance.choice(sorted(EDITS)), chance.randrange(number), chance.randint(1, points), chance.random()


__all__ = ["EDITS", "expect_edited", "sample"]

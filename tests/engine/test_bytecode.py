"""Law: no code is added to a loop body that has no with, try, unpacking target or guard in it."""

from __future__ import annotations

import dis
import linecache
import textwrap

import pytest

from daifu_ipy import vaccinate

BODIES = {
    "arithmetic": "total += x * 2",
    "calls": "y = f(x); total += y",
    "attribute": "o.x = x; total += o.x",
    "branch": """
        if x > 1:
            total += 1
        elif x:
            total -= 1
        else:
            continue
    """,
    "nested while": """
        while total < x:
            total += 1
        else:
            total -= 1
    """,
    "comprehension": "total += sum([a + x for a in (1, 2) if a])",
    "lambda": "g = lambda a: a + x; total += g(1)",
    "subscript": "d[x] = total; total = d[x]",
    "jumps": "if x == 3: break\ntotal += x",
    "match": """
        match x:
            case 1 | 2:
                total += 1
            case [a, *b]:
                total += 2
            case _:
                total += 3
    """,
    "assert": "assert x, total",
    "return": "if x == 9: return x",
    "global": "global G; G = x",
    "yield": "yield x",
    "await": "await f(x)",
}


def body_of_loop(function):
    """The instructions of the loop's body, to the last jump back; jump targets and constants left out."""
    ops = list(dis.get_instructions(function))
    loop = next(op for op in ops if op.opname == "FOR_ITER")
    last = max(op.offset for op in ops if "BACKWARD" in op.opname and op.argval == loop.offset)
    # the arguments of YIELD_VALUE and RESUME only say how many exception handlers lie around them
    left_out = {*dis.hasjrel, *dis.hasjabs, *dis.hasconst, dis.opmap["YIELD_VALUE"], dis.opmap["RESUME"]}
    return [(op.opname, None if op.opcode in left_out else op.argval) for op in ops if loop.offset < op.offset <= last]


@pytest.mark.parametrize("name", BODIES)
def test_the_body_of_a_loop_is_native(name):
    body = textwrap.indent(textwrap.dedent(BODIES[name]).strip(), " " * 8)
    kind = "async def" if name == "await" else "def"
    source = (
        f"{kind} f(xs, f, o, d):\n    total = 0\n    for x in xs:\n{body}\n    f(total, total, xs)\n    return f(xs)\n"
    )
    filename = f"<bytecode {name}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    native, ours = {}, {}
    exec(compile(source, filename, "exec"), native)
    exec(compile(source, filename, "exec"), ours)
    vaccinate(ours["f"], strict=True)
    plain = body_of_loop(native["f"])
    assert len(plain) > 2
    assert body_of_loop(ours["f"]) == plain


def test_a_loop_with_a_guard_is_not():
    """The comparison can fail."""
    body = "        match x:\n            case a if a:\n                total += 1\n"
    source = f"def f(xs):\n    total = 0\n    for x in xs:\n{body}"
    linecache.cache["<bytecode guard>"] = (len(source), None, source.splitlines(True), "<bytecode guard>")
    native, ours = {}, {}
    exec(compile(source, "<bytecode guard>", "exec"), native)
    exec(compile(source, "<bytecode guard>", "exec"), ours)
    vaccinate(ours["f"], strict=True)
    assert body_of_loop(ours["f"]) != body_of_loop(native["f"])

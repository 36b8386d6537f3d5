"""Run-time control flow: `if_`, `else_`, `loop`, `range_`, `kloop`, `scope`, labels and branches.

with ptx.if_(p): A            @!p bra $if_end_0;  A  $if_end_0:
with ptx.else_(): B           … A  bra $else_end_0;  $if_end_0:  B  $else_end_0:
with ptx.loop("k", pred=p):   k:  body  @p bra k;
"""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from warpsmith.assembly.ptx.tree import Label
from warpsmith.base.place import error, user_place
from warpsmith.base.ptx_types import TYPES
from warpsmith.dsl.registers import NegPred, Reg
from warpsmith.dsl.trace import current

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import TracebackType

    from warpsmith.dsl.scope import Scope
    from warpsmith.dsl.trace import Trace

__all__ = ["bra", "else_", "expr", "if_", "kloop", "label", "loop", "range_", "ret", "scope"]

Predicate = Reg | NegPred


def _check_predicate(what: str, pred: object) -> Predicate:
    reg = pred.reg if isinstance(pred, NegPred) else pred
    if not isinstance(reg, Reg):
        raise error(
            f"{what} needs a predicate register, not {type(pred).__name__}",
            "for a test that Python can decide while tracing write a plain `if`",
        )
    if reg.type != "pred":
        raise error(f"{what} needs a predicate, and {reg.name} is {reg.dtype}", f"compare it: {what}({reg.name} != 0)")
    return pred  # type: ignore[return-value]


class _Block:
    """A context manager that knows the scope it was entered in, and is missed when it never is."""

    _trace: Trace
    _scope: Scope

    def _expect(self, what: str) -> None:
        current().expect(self, f"with {what}:", user_place())

    def _enter(self) -> None:
        self._trace = current()
        self._trace.met(self)
        self._scope = self._trace.scope

    def _leave(self, what: str) -> None:
        if self._trace.scope is not self._scope:
            raise error(
                f"unbalanced scope: a ptx.scope() opened inside {what} is still open at its end",
                "leave scopes in the reverse order of entering them",
            )


@final
class if_(_Block):  # noqa: N801 - reads as a statement
    """Run the body for the threads whose predicate is true: one branch around it. `else_` may follow."""

    def __init__(self, p: Predicate) -> None:
        self._pred = _check_predicate("ptx.if_", p)
        self._expect("ptx.if_(…)")

    def __enter__(self) -> None:
        self._enter()
        self._end = self._trace.unique_label("if_end")
        self._trace.emit("bra", (self._end,), ~self._pred)

    def __exit__(self, kind: type[BaseException] | None, value: object, traceback: TracebackType | None) -> None:
        if kind is not None:
            return
        self._leave("ptx.if_")
        node = Label(self._end)
        self._trace.note_label(self._end)
        self._trace.append(node)
        self._trace.last_if = (self._scope.body, node)


@final
class else_(_Block):  # noqa: N801 - reads as a statement
    """Run the body for the threads that the `if_` just before did not take."""

    def __init__(self) -> None:
        self._expect("ptx.else_()")

    def __enter__(self) -> None:
        self._enter()
        trace = self._trace
        body = trace.scope.body
        if trace.last_if is None or trace.last_if[0] is not body or body[-1] is not trace.last_if[1]:
            raise error("ptx.else_() must directly follow the `with ptx.if_(…)` block it belongs to")
        end = body.pop()
        self._end = trace.unique_label("else_end")
        trace.emit("bra", (self._end,))
        body.append(end)
        trace.last_if = None

    def __exit__(self, kind: type[BaseException] | None, value: object, traceback: TracebackType | None) -> None:
        if kind is None:
            self._leave("ptx.else_")
            self._trace.label(self._end)


@final
class loop(_Block):  # noqa: N801 - reads as a statement
    """Do-while: the label at entry, `@pred bra label` at exit; without `pred` the loop never ends by itself."""

    def __init__(self, label: str, *, pred: Predicate | None = None) -> None:
        self._label = _label_name(label)
        self._pred = None if pred is None else _check_predicate("ptx.loop(pred=)", pred)
        self._expect("ptx.loop(…)")

    def __enter__(self) -> None:
        self._enter()
        self._trace.label(self._label)

    def __exit__(self, kind: type[BaseException] | None, value: object, traceback: TracebackType | None) -> None:
        if kind is None:
            self._leave("ptx.loop")
            self._trace.emit("bra" if self._pred is not None else "bra.uni", (self._label,), self._pred)


@final
class scope(_Block):  # noqa: N801 - reads as a statement
    """Open a `{ }` block: registers declared inside are local to it."""

    def __init__(self) -> None:
        self._expect("ptx.scope()")

    def __enter__(self) -> None:
        self._enter()
        self._scope = self._trace.open_scope()

    def __exit__(self, kind: type[BaseException] | None, value: object, traceback: TracebackType | None) -> None:
        if kind is None:
            self._trace.close_scope(self._scope)


@final
class expr(_Block):  # noqa: N801 - reads as a statement
    """Group the instructions of a Python expression. The instructions are those written without it."""

    def __init__(self) -> None:
        self._expect("ptx.expr()")

    def __enter__(self) -> None:
        self._enter()

    def __exit__(self, kind: type[BaseException] | None, value: object, traceback: TracebackType | None) -> None:
        return


def range_(start: int | Reg, stop: int | Reg | None = None, step: int = 1) -> Iterator[Reg]:
    """Loop at run time: `for k in ptx.range_(0, K, BK):` with `k` an s32 register, tested before each trip.

    `start` may be a register. `range_(stop)` starts at 0. A `break` out of the Python loop would leave the loop without its
    end and is refused.
    """
    trace = current()
    if stop is None:
        start, stop = 0, start
    if not isinstance(step, int) or isinstance(step, bool) or step == 0:
        raise error(f"the step of ptx.range_ is an int other than 0, not {step!r}")
    for name, bound in (("start", start), ("stop", stop)):
        if not isinstance(bound, (int, Reg)):
            raise error(f"ptx.range_: {name} is an int or a register, not {type(bound).__name__}")
    awaited = object()
    trace.expect(awaited, "for k in ptx.range_(…):", user_place())
    return _range(trace, awaited, start, stop, step)


def _range(trace: Trace, awaited: object, start: int | Reg, stop: int | Reg, step: int) -> Iterator[Reg]:
    trace.met(awaited)
    counter = trace.new(TYPES["s32"])
    head, end = trace.unique_label("loop"), trace.unique_label("loop_end")
    trace.emit("mov.b32" if isinstance(start, Reg) else "mov.s32", (counter, start))
    trace.label(head)
    done = trace.new(TYPES["pred"])
    trace.emit("setp.ge.s32" if step > 0 else "setp.le.s32", (done, counter, stop))
    trace.emit("bra", (end,), done)
    inside = trace.scope
    trace.open_loops.append((end, user_place()))
    yield counter
    if trace.scope is not inside:
        raise error("unbalanced scope: a ptx.scope() opened inside ptx.range_ is still open at its end")
    trace.open_loops.pop()
    trace.emit("add.s32", (counter, counter, step))
    trace.emit("bra", (head,))
    trace.label(end)


def kloop(total: int | Reg, *, unroll: int = 1, body: Callable[[], object], loop_label: str = "kloop") -> None:
    """Run `body()` `total` times: `unroll` copies a trip while that many are left, then the rest one by one.

    `total` is an int (the split is decided while tracing) or a 32-bit register (not changed).
    """
    trace = current()
    if not isinstance(unroll, int) or unroll < 1:
        raise error(f"ptx.kloop: unroll is an int of at least 1, not {unroll!r}")
    if isinstance(total, Reg):
        _kloop_dynamic(trace, total, unroll, body, trace.unique(_label_name(loop_label)))
        return
    if not isinstance(total, int) or total < 0:
        raise error(f"ptx.kloop: the number of trips is an int from 0 or a register, not {total!r}")
    trips = total // unroll
    if trips > 1:
        left = trace.new(TYPES["u32"])
        trace.emit("mov.u32", (left, trips))
        head = trace.unique(_label_name(loop_label))
        trace.label(head)
        for _ in range(unroll):
            body()
        trace.emit("sub.u32", (left, left, 1))
        again = trace.new(TYPES["pred"])
        trace.emit("setp.ne.u32", (again, left, 0))
        trace.emit("bra", (head,), again)
        total -= trips * unroll
    for _ in range(total):
        body()


def _kloop_dynamic(trace: Trace, total: Reg, unroll: int, body: Callable[[], object], name: str) -> None:
    left = trace.new(TYPES["s32"])
    trace.emit("mov.b32", (left, total))
    tail, end = f"{name}_tail", f"{name}_end"
    trace.label(name)
    few = trace.new(TYPES["pred"])
    trace.emit("setp.lt.s32", (few, left, unroll))
    trace.emit("bra", (tail,), few)
    for _ in range(unroll):
        body()
    trace.emit("sub.s32", (left, left, unroll))
    trace.emit("bra", (name,))
    trace.label(tail)
    for done in range(unroll - 1):
        stop = trace.new(TYPES["pred"])
        trace.emit("setp.le.s32", (stop, left, done))
        trace.emit("bra", (end,), stop)
        body()
    trace.label(end)


def _label_name(name: object) -> str:
    if not isinstance(name, str) or not name.replace("$", "_").replace("%", "_").isidentifier() or not name.isascii():
        raise error(f"a label is an identifier, not {name!r}", 'write e.g. ptx.label("main_loop")')
    return name


def label(name: str) -> None:
    """Set a label; labels are unique in a kernel."""
    current().label(_label_name(name))


def bra(target: str, *, pred: Predicate | None = None) -> None:
    """Branch to a label, for the threads whose `pred` is true."""
    trace = current()
    if pred is not None:
        _check_predicate("ptx.bra(pred=)", pred)
    trace.emit("bra", (_label_name(target),), pred)


def ret(*, pred: Predicate | None = None) -> None:
    """End the thread."""
    current().emit("ret", (), pred)

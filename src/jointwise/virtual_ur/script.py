"""Programs in URScript: the subset that `jointwise joint plan` and `jointwise excite` write.

``def``, ``while``, ``if``/``else``, assignments, ``movej``, ``servoj``, ``stopj``, ``sleep``, ``popup``, ``textmsg``
and ``sync``. A program is executed without a robot and gives the commanded positions of every control period.
Expressions are parsed and evaluated by this module; they cannot call anything but a few mathematical functions.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from jointwise.errors import ModelError
from jointwise.spatial import Array

AXES = 6
PERIOD = 0.002
"""Control period of an e-Series controller, s."""
MOST_PERIODS = 1_800_000
"""Limit of control periods: one hour."""
MOST_STATEMENTS = 10_000_000
"""Limit of executed statements and rounds of loops, five per control period of an hour: a loop that does not move would
not end."""
LARGEST = 1e9
"""Limit of every number of a program: angles in rad, times in s and counters are far below."""
DEEPEST = 50
"""Limit of nested expressions and blocks."""

_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "sin": math.sin, "cos": math.cos, "tan": math.tan, "sqrt": math.sqrt, "pow": math.pow, "floor": math.floor,
    "ceil": math.ceil, "d2r": math.radians, "r2d": math.degrees, "norm": abs,
}  # fmt: skip
_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.Mod: operator.mod,
}  # fmt: skip
_UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Not: operator.not_,
}  # fmt: skip
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}  # fmt: skip

_Names = dict[str, Any]
_Value = Callable[[_Names], Any]
"""A compiled expression: variables -> value."""
_CALL = re.compile(r"^(\w+)\s*\((.*)\)$", re.DOTALL)
_ASSIGNMENT = re.compile(r"^(?:local\s+|global\s+)?([A-Za-z_]\w*)\s*=(?!=)\s*(.+)$")
_DEFINITION = re.compile(r"^def\s+(\w+)\(\s*\):$")


def run_script(text: str, name: str = "program") -> Array:
    """Return the commanded positions of a program, (periods, 6) rad at 500 Hz.

    The program starts at rest in the pose of its first move.

    Args:
        text: URScript.
        name: Name of the program in messages.

    Raises:
        ModelError: If a statement is not part of the subset, or the program does not move or does not end.

    """
    machine = _Machine(name)
    body = _Parser(text, name).program()
    machine.execute(body)
    if not machine.path:
        raise ModelError(f"{name}: the program does not move the robot.")
    return np.concatenate(machine.path)


@dataclass(frozen=True)
class _Statement:
    """One statement: its line, what it does, and the blocks inside it."""

    line: int
    action: str
    value: Any = None
    body: tuple[_Statement, ...] = ()
    other: tuple[_Statement, ...] = ()


class _Parser:
    """Lines of a program -> statements."""

    def __init__(self, text: str, name: str) -> None:
        bare = (re.sub(r"#.*$", "", line).strip() for line in text.splitlines())
        self._lines = [(number, line) for number, line in enumerate(bare, start=1) if line]
        self._next, self._name = 0, name

    def program(self) -> tuple[_Statement, ...]:
        """Return the statements of the whole program; a function at the top is its main program."""
        statements = list[_Statement]()
        while self._next < len(self._lines):
            number, line = self._lines[self._next]
            if _DEFINITION.match(line):
                self._next += 1
                body, closing = self._block(0)
                self._expect(closing == "end", number, "a function must end with 'end'")
                statements += body
            elif line.endswith("()") and "def" not in line:
                self._next += 1  # the call of the function above
            else:
                statements.append(self._statement(0))
        return tuple(statements)

    def _block(self, level: int) -> tuple[tuple[_Statement, ...], str]:
        """Return the statements up to a closing word, and that word."""
        statements = list[_Statement]()
        self._expect(level < DEEPEST, self._line(), f"blocks must be nested at most {DEEPEST} deep")
        while self._next < len(self._lines):
            _, line = self._lines[self._next]
            if line in ("end", "else:"):
                self._next += 1
                return tuple(statements), line
            statements.append(self._statement(level + 1))
        raise ModelError(f"{self._name}: a block is not closed by 'end'.")

    def _statement(self, level: int) -> _Statement:
        number, line = self._lines[self._next]
        self._next += 1
        if line.startswith(("while ", "if ")):
            return self._compound(number, line, level)
        if match := _ASSIGNMENT.match(line):
            return _Statement(number, "assign", (match[1], self._expression(match[2], number)))
        if match := _CALL.match(line):
            return _Statement(number, "call", (match[1], self._arguments(match[2], number)))
        raise self._error(number, f"'{line[:60]}' is not a statement that is understood here")

    def _compound(self, number: int, line: str, level: int) -> _Statement:
        word, _, condition = line.partition(" ")
        self._expect(condition.endswith(":"), number, f"'{word}' must end with ':'")
        test = self._expression(condition[:-1], number)
        body, closing = self._block(level)
        other: tuple[_Statement, ...] = ()
        if closing == "else:":
            self._expect(word == "if", number, "'else' must belong to 'if'")
            other, closing = self._block(level)
        self._expect(closing == "end", number, f"'{word}' must be closed by 'end'")
        return _Statement(number, word, test, body, other)

    def _arguments(self, text: str, number: int) -> tuple[list[_Value], dict[str, _Value]]:
        """Return positional and named arguments."""
        call = self._tree(f"f({text})", number)
        assert isinstance(call, ast.Call)
        named = {word.arg: _compiled(word.value) for word in call.keywords if word.arg}
        return [self._compile(value, number) for value in call.args], named

    def _expression(self, text: str, number: int) -> _Value:
        return self._compile(self._tree(text, number), number)

    def _tree(self, text: str, number: int) -> ast.expr:
        try:
            return ast.parse(text.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise self._error(number, f"'{text[:60]}' is not an expression") from None

    def _compile(self, tree: ast.expr, number: int) -> _Value:
        try:
            return _compiled(tree)
        except ModelError as problem:
            raise self._error(number, str(problem)) from None

    def _line(self) -> int:
        return self._lines[min(self._next, len(self._lines) - 1)][0]

    def _expect(self, condition: bool, number: int, rule: str) -> None:
        if not condition:
            raise self._error(number, rule)

    def _error(self, number: int, problem: str) -> ModelError:
        return ModelError(f"{self._name}, line {number}: {problem}.")


def _compiled(tree: ast.expr, level: int = 0) -> _Value:
    """Return an expression as a function of the variables; rejects everything but arithmetic.

    Raises:
        ModelError: If the expression contains something else.

    """
    if level > DEEPEST * 20:
        raise ModelError("an expression is nested too deeply")
    value = _COMPILERS[type(tree)](tree, level + 1) if type(tree) in _COMPILERS else None
    if value is None:
        raise ModelError(f"'{ast.unparse(tree)[:60]}' is not arithmetic that is understood here")
    return value


def _constant(tree: ast.Constant, level: int) -> _Value | None:
    value = tree.value
    return (lambda names: value) if isinstance(value, (bool, int, float, str)) else None


def _list(tree: ast.List, level: int) -> _Value:
    items = [_compiled(item, level) for item in tree.elts]
    return lambda names: [item(names) for item in items]


def _binary(tree: ast.BinOp, level: int) -> _Value | None:
    if type(tree.op) not in _BINARY:
        return None
    apply, left, right = _BINARY[type(tree.op)], _compiled(tree.left, level), _compiled(tree.right, level)
    return lambda names: _number(apply(_number(left(names)), _number(right(names))))


def _number(value: Any) -> Any:
    """Return an operand or a result of arithmetic; texts, lists and numbers without bound would take all memory."""
    if not isinstance(value, int | float):
        raise ModelError("arithmetic must be between numbers")
    if not abs(value) <= LARGEST:
        raise ModelError(f"a number must be finite and at most {LARGEST:g}")
    return value


def _unary(tree: ast.UnaryOp, level: int) -> _Value | None:
    if type(tree.op) not in _UNARY:
        return None
    apply, operand = _UNARY[type(tree.op)], _compiled(tree.operand, level)
    return lambda names: apply(operand(names))


def _comparison(tree: ast.Compare, level: int) -> _Value | None:
    if len(tree.ops) != 1 or type(tree.ops[0]) not in _COMPARE:
        return None
    apply, left, right = _COMPARE[type(tree.ops[0])], _compiled(tree.left, level), _compiled(tree.comparators[0], level)
    return lambda names: apply(left(names), right(names))


def _boolean(tree: ast.BoolOp, level: int) -> _Value:
    parts, every = [_compiled(part, level) for part in tree.values], all if isinstance(tree.op, ast.And) else any
    return lambda names: every(part(names) for part in parts)


def _function(tree: ast.Call, level: int) -> _Value | None:
    if not isinstance(tree.func, ast.Name) or tree.func.id not in _FUNCTIONS or tree.keywords:
        return None
    function, arguments = _FUNCTIONS[tree.func.id], [_compiled(item, level) for item in tree.args]
    return lambda names: function(*(argument(names) for argument in arguments))


def _item(tree: ast.Subscript, level: int) -> _Value:
    values, index = _compiled(tree.value, level), _compiled(tree.slice, level)

    def value(names: _Names) -> Any:
        k = index(names)
        if not isinstance(k, int) or k < 0:
            raise ModelError(f"the index of a list must be a whole number from 0. Got {k} instead")
        return values(names)[k]

    return value


_COMPILERS: dict[type[ast.expr], Callable[[Any, int], _Value | None]] = {
    ast.Constant: _constant,
    ast.Name: lambda tree, level: _variable(tree.id),
    ast.List: _list,
    ast.BinOp: _binary,
    ast.UnaryOp: _unary,
    ast.Compare: _comparison,
    ast.BoolOp: _boolean,
    ast.Call: _function,
    ast.Subscript: _item,
}
"""Kind of expression -> its compiler; None from a compiler rejects the expression."""


def _variable(name: str) -> _Value:
    def value(names: _Names) -> Any:
        if name not in names:
            raise ModelError(f"variable '{name}' has no value")
        return names[name]

    return value


@dataclass
class _Machine:
    """Executes statements; `path` holds the commanded positions, parts of shape (periods, 6)."""

    name: str
    names: _Names = field(default_factory=dict)
    path: list[Array] = field(default_factory=list)
    pose: Array | None = None
    periods: int = 0
    statements: int = 0

    def execute(self, body: Sequence[_Statement]) -> None:
        for statement in body:
            self._count()
            try:
                self._step(statement)
            except (TypeError, ValueError, ZeroDivisionError, OverflowError, IndexError) as problem:  # or a ModelError
                if str(problem).startswith(self.name):
                    raise
                raise ModelError(f"{self.name}, line {statement.line}: {problem}.") from None

    def _count(self) -> None:
        """Count a statement or a round of a loop; reject a program that does not end."""
        self.statements += 1
        if self.statements > MOST_STATEMENTS:
            raise ModelError(f"{self.name}: the program does not end.")

    def _step(self, statement: _Statement) -> None:
        if statement.action == "assign":
            name, value = statement.value
            self.names[name] = value(self.names)
        elif statement.action == "if":
            self.execute(statement.body if statement.value(self.names) else statement.other)
        elif statement.action == "while":
            while statement.value(self.names):
                self._count()
                self.execute(statement.body)
        else:
            function, (positional, named) = statement.value
            arguments = [value(self.names) for value in positional]
            self._call(function, arguments, {word: value(self.names) for word, value in named.items()})

    def _call(self, function: str, arguments: list[Any], named: dict[str, Any]) -> None:
        if function == "movej":
            options = dict(zip(("a", "v", "t", "r"), arguments[1:], strict=False)) | named
            self._move(_pose(arguments), float(options.get("a", 1.4)), float(options.get("v", 1.05)))
        elif function == "servoj":
            options = dict(zip(("a", "v", "t"), arguments[1:], strict=False)) | named
            self._hold(_pose(arguments), float(options.get("t", PERIOD)))
        elif function == "sleep":
            self._hold(self.pose, float(arguments[0]))
        elif function not in ("popup", "textmsg", "stopj", "sync"):
            raise ModelError(f"'{function}' is not a function that is understood here")

    def _hold(self, pose: Array | None, seconds: float) -> None:
        """Command a pose for some time."""
        count = round(seconds / PERIOD)
        if pose is not None and count > 0:
            self._add(np.tile(pose, (self._fitting(count), 1)))

    def _move(self, target: Array, acceleration: float, speed: float) -> None:
        """Command a synchronised move with a trapezoidal speed profile of the joint that moves farthest."""
        if acceleration <= 0.0 or speed <= 0.0:
            raise ModelError(f"movej needs a > 0 and v > 0. Got {acceleration:g} and {speed:g} instead")
        if self.pose is None:
            self._add(target[None])
            return
        distance = float(np.abs(target - self.pose).max())
        if distance == 0.0:
            return
        s = trapezoid(distance, speed, acceleration, self._fitting)
        self._add(self.pose + s[:, None] * (target - self.pose))

    def _fitting(self, count: int) -> int:
        if self.periods + count > MOST_PERIODS:
            raise ModelError(f"a program must last at most {MOST_PERIODS * PERIOD:g} s")
        return count

    def _add(self, positions: Array) -> None:
        self.path.append(positions)
        self.periods += len(positions)
        self.pose = positions[-1]


def _pose(arguments: list[Any]) -> Array:
    """Return the pose of a move."""
    pose = np.asarray(arguments[0] if arguments else None, dtype=float)
    if pose.shape != (AXES,) or not (np.abs(pose) <= LARGEST).all():
        raise ModelError(f"a pose must be a list of {AXES} angles in rad, at most {LARGEST:g}")
    return pose


def trapezoid(distance: float, speed: float, acceleration: float, fitting: Callable[[int], int]) -> Array:
    """Return the path parameter s of a trapezoidal move, from the first period after the start to 1, (periods,).

    Args:
        distance: Length of the move, rad.
        speed: Largest speed, rad/s.
        acceleration: Acceleration at both ends, rad/s².
        fitting: Called with the number of periods before they are made.

    """
    top = min(speed, math.sqrt(distance * acceleration))
    ramp = top / acceleration
    total = ramp + distance / top
    t = np.arange(1, fitting(math.ceil(total / PERIOD)) + 1) * PERIOD
    near = np.clip(np.minimum(t, total - t), 0.0, None)
    run = np.where(near < ramp, 0.5 * acceleration * near**2, top * near - 0.5 * top * ramp)
    s: Array = np.where(t < 0.5 * total, run, distance - run) / distance
    return s

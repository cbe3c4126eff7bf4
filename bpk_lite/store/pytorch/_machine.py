"""Run a pickle's opcodes on inert values (S132, S133, S135 to S137).

`pickletools` takes the stream apart; this machine keeps the stack and the memo. Values are shared,
as Python shares them, never copied: a list that is referenced twice is one list, and a pickle that
doubles itself again and again stays as small as it is.
"""

from __future__ import annotations

import pickletools
import warnings
from typing import IO, TYPE_CHECKING, Any

from bpk_lite.pack import LimitError
from bpk_lite.store._errors import PickleError
from bpk_lite.store.pytorch._calls import call, storage_reference
from bpk_lite.store.pytorch._nesting import MAX_DEPTH, is_too_deep, release
from bpk_lite.store.pytorch._values import Global, Opaque, TensorValue, type_name

if TYPE_CHECKING:
    from collections.abc import Callable

    from bpk_lite.pack import BpkError

__all__ = ["load"]

_MARK = object()
_REFUSED = frozenset({"EXT1", "EXT2", "EXT4", "NEXT_BUFFER", "READONLY_BUFFER", "INST", "OBJ"})
_PUSHES_ARGUMENT = frozenset({
    "INT", "LONG", "BININT", "BININT1", "BININT2", "LONG1", "LONG4", "FLOAT", "BINFLOAT", "UNICODE",
    "SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8", "BINBYTES", "SHORT_BINBYTES", "BINBYTES8",
    "BYTEARRAY8",
})  # fmt: skip
_BYTE_STRINGS = frozenset({"STRING", "BINSTRING", "SHORT_BINSTRING"})
_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_PLAIN_KEYS = (str, int, float, bytes, bool, type(None))
_MAX_PROTOCOL = 5


def load(
    stream: IO[bytes],
    *,
    storages: bool = True,
    resolve: Callable[[Any], Any] = storage_reference,
) -> Any:
    """Return the value of the one pickle that `stream` is at; leave it behind its end.

    Args:
        stream: at the beginning of a pickle.
        storages: whether there are persistent ids; otherwise any is an error (S131).
        resolve: returns what a persistent id names.

    Raises:
        PickleError: not a pickle, cut short, or one that says what cannot be.
        LimitError: nested beyond any real checkpoint.
    """
    machine = _Machine(resolve if storages else None)
    failure: BpkError | None = None
    try:
        with warnings.catch_warnings():
            # pickletools about odd escapes in Python 2 strings, which are the file's affair
            warnings.simplefilter("ignore", DeprecationWarning)
            for opcode, argument, _ in pickletools.genops(stream):
                machine.step(opcode.name, argument)
    except PickleError as error:
        failure = PickleError(*error.args)  # a new one: frames of the old would keep values alive
    except (ValueError, TypeError, IndexError, KeyError, OverflowError, UnicodeError) as error:
        failure = PickleError(f"the pickle is broken: {type(error).__name__}: {error}")
    except (MemoryError, RecursionError) as error:
        failure = PickleError(f"the pickle is beyond what can be read: {type(error).__name__}")
    if failure is None and is_too_deep(machine.made):
        failure = LimitError(f"the pickle's nesting exceeds {MAX_DEPTH} levels")
    if failure is not None:
        machine.forget()
        raise failure
    return machine.result


class _Machine:
    """Stack and memo of one pickle, and all containers in the order in which they were made."""

    __slots__ = ("made", "memo", "resolve", "result", "stack")

    def __init__(self, resolve: Callable[[Any], Any] | None) -> None:
        self.stack: list[Any] = []
        self.made: list[Any] = []
        self.memo: dict[int, Any] = {}
        self.resolve = resolve
        self.result: Any = None

    def step(self, name: str, argument: Any) -> None:
        """Carry out one opcode."""
        if name in _PUSHES_ARGUMENT:
            self.stack.append(argument)
        elif name in _CONSTANTS:
            self.stack.append(_CONSTANTS[name])
        elif name in _BYTE_STRINGS:
            self.stack.append(_python2_text(argument))
        elif name in _REFUSED:
            raise PickleError(f"opcode {name} has no place in a checkpoint")
        else:
            handler = getattr(self, f"op_{name.lower()}", None)
            if handler is None:
                raise PickleError(f"opcode {name} is not known")
            handler(argument)

    def push(self, value: Any) -> None:
        """Put what was made just now on the stack."""
        self.stack.append(value)
        if isinstance(value, dict | list | tuple | Opaque):
            self.made.append(value)

    def forget(self) -> None:
        """Let go of everything, without recursion."""
        self.result = None
        self.stack.clear()
        self.memo.clear()
        release(self.made)

    def pop(self) -> Any:
        """Take the top of the stack; a mark is no value."""
        if not self.stack or self.stack[-1] is _MARK:
            raise PickleError("the pickle takes a value where there is none")
        return self.stack.pop()

    def top(self) -> Any:
        """Look at the top of the stack."""
        if not self.stack or self.stack[-1] is _MARK:
            raise PickleError("the pickle changes a value where there is none")
        return self.stack[-1]

    def pop_to_mark(self) -> list[Any]:
        """Take everything above the topmost mark, and the mark."""
        for position in range(len(self.stack) - 1, -1, -1):
            if self.stack[position] is _MARK:
                taken = self.stack[position + 1 :]
                del self.stack[position:]
                return taken
        raise PickleError("the pickle goes back to a mark where there is none")

    # -- the stream

    def op_proto(self, version: int) -> None:
        if version > _MAX_PROTOCOL:
            raise PickleError(
                f"pickle protocol {version}; protocols up to {_MAX_PROTOCOL} are read"
            )

    def op_frame(self, _: int) -> None:
        pass  # a hint for reading ahead

    def op_stop(self, _: None) -> None:
        self.result = self.pop()

    # -- stack and memo

    def op_mark(self, _: None) -> None:
        self.stack.append(_MARK)

    def op_pop(self, _: None) -> None:
        if not self.stack:
            raise PickleError("the pickle takes a value where there is none")
        self.stack.pop()

    def op_pop_mark(self, _: None) -> None:
        self.pop_to_mark()

    def op_dup(self, _: None) -> None:
        self.stack.append(self.top())

    def op_put(self, key: int) -> None:
        self.memo[key] = self.top()

    op_binput = op_long_binput = op_put

    def op_memoize(self, _: None) -> None:
        self.memo[len(self.memo)] = self.top()

    def op_get(self, key: int) -> None:
        if key not in self.memo:
            raise PickleError(f"the pickle recalls memo {key}, which was never stored")
        self.stack.append(self.memo[key])

    op_binget = op_long_binget = op_get

    # -- containers

    def op_empty_list(self, _: None) -> None:
        self.push([])

    def op_empty_dict(self, _: None) -> None:
        self.push({})

    def op_empty_tuple(self, _: None) -> None:
        self.stack.append(())

    op_empty_set = op_empty_list

    def op_list(self, _: None) -> None:
        self.push(self.pop_to_mark())

    op_frozenset = op_list

    def op_tuple(self, _: None) -> None:
        self.push(tuple(self.pop_to_mark()))

    def op_tuple1(self, _: None) -> None:
        self.push((self.pop(),))

    def op_tuple2(self, _: None) -> None:
        second = self.pop()
        self.push((self.pop(), second))

    def op_tuple3(self, _: None) -> None:
        third, second = self.pop(), self.pop()
        self.push((self.pop(), second, third))

    def op_dict(self, _: None) -> None:
        made: dict[Any, Any] = {}
        _set_items(made, self.pop_to_mark())
        self.push(made)

    def op_setitem(self, _: None) -> None:
        value, key = self.pop(), self.pop()
        _set_items(self.top(), [key, value])

    def op_setitems(self, _: None) -> None:
        items = self.pop_to_mark()
        _set_items(self.top(), items)

    def op_append(self, _: None) -> None:
        value = self.pop()
        _append(self.top(), [value])

    def op_appends(self, _: None) -> None:
        values = self.pop_to_mark()
        _append(self.top(), values)

    op_additems = op_appends

    # -- names, calls, objects

    def op_global(self, names: str) -> None:
        module, _, name = names.partition(" ")
        self.stack.append(Global(module, name))

    def op_stack_global(self, _: None) -> None:
        name, module = self.pop(), self.pop()
        if not isinstance(name, str) or not isinstance(module, str):
            raise PickleError("the pickle names a global by something that is no text")
        self.stack.append(Global(module, name))

    def op_reduce(self, _: None) -> None:
        args, function = self.pop(), self.pop()
        if not isinstance(args, tuple):
            raise PickleError(f"a call's arguments are a {type_name(args)}, expected a tuple")
        self.push(call(function, args))

    def op_newobj(self, _: None) -> None:
        args, cls = self.pop(), self.pop()
        self.push(_created(cls, args))

    def op_newobj_ex(self, _: None) -> None:
        keywords, args, cls = self.pop(), self.pop(), self.pop()
        made = _created(cls, args)
        if isinstance(made, Opaque):
            made.args = (*made.args, keywords)
        self.push(made)

    def op_build(self, _: None) -> None:
        state = self.pop()
        target = self.top()
        if isinstance(target, Opaque):
            target.state = state
        elif isinstance(target, TensorValue):
            raise PickleError("the pickle sets a state on a tensor")
        elif isinstance(target, dict) and isinstance(state, dict):
            # attributes of a mapping, such as a state dict's _metadata (S133); items come first
            for key, value in state.items():
                target.setdefault(key, value)

    def op_persid(self, text: str) -> None:
        self._persistent(text)

    def op_binpersid(self, _: None) -> None:
        self._persistent(self.pop())

    def _persistent(self, reference: Any) -> None:
        if self.resolve is None:
            raise PickleError(
                "the pickle refers to a storage, but a plain pickle has none: the tensors are lost"
            )
        self.stack.append(self.resolve(reference))


def _created(cls: Any, args: Any) -> Any:
    """Return what ``cls.__new__(cls, *args)`` would be, without creating it."""
    if not isinstance(args, tuple):
        raise PickleError(f"an object's arguments are a {type_name(args)}, expected a tuple")
    if cls == Global("collections", "OrderedDict"):
        return {}
    return Opaque(type_name(cls), args, created=True)


def _set_items(target: Any, items: list[Any]) -> None:
    if len(items) % 2:
        raise PickleError("the pickle sets a key without a value")
    if isinstance(target, Opaque):
        target = target.mapping
    if not isinstance(target, dict):
        raise PickleError(f"the pickle sets items of a {type_name(target)}, which has none")
    for key, value in zip(items[::2], items[1::2], strict=True):
        target[_key(key)] = value


def _key(key: Any) -> Any:
    """Return a key that hashes in no time: nested tuples could take forever."""
    if isinstance(key, tuple):
        plain = all(isinstance(part, _PLAIN_KEYS) for part in key)
        return key if plain else repr(tuple(map(type_name, key)))
    if isinstance(key, (Global, *_PLAIN_KEYS)):
        return key
    if isinstance(key, list | dict):
        raise PickleError(f"a {type_name(key)} is a key, which Python does not allow")
    return type_name(key)


def _append(target: Any, values: list[Any]) -> None:
    if isinstance(target, Opaque):
        target = target.sequence
    if not isinstance(target, list):
        raise PickleError(f"the pickle appends to a {type_name(target)}, which is no list")
    target.extend(values)


def _python2_text(argument: str | bytes) -> str | bytes:
    """Return a Python 2 string as text where it is UTF-8, else as bytes (S133)."""
    raw = argument.encode("latin-1") if isinstance(argument, str) else argument
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw

"""Any object -> a bounded, JSON-ready snapshot.

A snapshot is taken between two lines of somebody's lecture. So it must end soon whatever the object is,
and it must leave no trace: nothing is consumed, changed, counted, or seen by torch's modes. Three habits
follow, and hold everywhere below:

- *Trust the type, not the object.* What `type()` says decides, and the base type's own methods are called
  (`list.__len__(x)`, never `len(x)`), so overridden methods, properties and `__getattr__` do not run.
- *Foreign code runs in one place*, `Clock.call`, under a time limit. It is only ever a `repr` or a `str`.
- *Torch is looked up, never imported*, and called inside `Torch.quiet`, below autograd and all modes.
"""

from __future__ import annotations

import collections
import dataclasses
import enum
import itertools
import json.encoder
import math
import re
import signal
import sys
import threading
import time
import types
import weakref
from array import array
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from typing import Any, NamedTuple

from litbook import trace
from litbook.errors import Stopped

NODES = 200  # snapshots within one snapshot
TEXT = 4096  # bytes of JSON text within one snapshot, type names included
ONE_TEXT = 1000  # characters of a single text
TYPE_NAME = 120  # characters
ITEMS = 20  # of one container
DEPTH = 4  # containers within containers
WHOLE = 64  # a tensor with at most so many elements keeps all of its values
CORNER = 96  # values of a larger one
ROWS, COLUMNS, LEADING = 6, 8, 2  # shape of that corner
MEMORY = 32  # a storage with at most so many elements is kept whole
VALUES = 192  # tensor values within one snapshot
NESTED_READ = 2**26  # elements that statistics of tensors inside containers may read, all together
BLOCK = 2**21  # elements read at a time for statistics: fits a cache, at most 48 MiB of scratch
SECONDS = 0.2  # for all the foreign code of one snapshot
AGAIN = 0.001  # a repr that swallows its interruption is interrupted anew after so many seconds
PATIENCE = 3  # and after so many times much sooner
SAFE_BITS = 2000  # int -> decimal text is never refused below 640 digits (sys.int_info)
SORTED_SET = 10_000  # sets up to this size are shown in order


# ---------------------------------------------------------------------------- the two entrances


def snapshot(
    value: object, storages: Storages | None = None, *, axes: tuple[str, ...] | None = None
) -> trace.Snapshot:
    """What `value` is now, bounded: at most 32 kB of JSON, 4 kB for a single tensor.

    `storages` numbers the memory of tensors; pass the same one throughout a run, so that sharing shows.
    `axes` names the axes of `value` where it is a tensor of that rank, and is ignored elsewhere.

    Never raises, except for what comes from outside while it works: `KeyboardInterrupt`, `Stopped`, and
    a `BaseException` that `value` did not raise itself.
    """
    kind = type(value)
    try:
        if is_immediate(value):
            return _PLAIN[id(kind)](value)
        return _Walk(storages, axes).see(value)
    except Stopped:
        raise
    except Exception:  # out of memory or of stack, most likely: so nothing more is called
        return _UNREADABLE


def is_immediate(value: object) -> bool:
    """Whether `value` is a small immutable builtin, so that keeping it now and snapshotting later is safe."""
    kind = type(value)
    if kind is str:
        return len(value) <= 64  # type: ignore[arg-type]
    return kind is float or kind is int or kind is bool or value is None


_UNREADABLE = trace.Opaque("object", "", why="could not be read")


def _unreadable(kind: type, error: Exception) -> trace.Opaque:
    return trace.Opaque(_name(kind), "", why=f"could not be read: {_name(type(error))}")


# ---------------------------------------------------------------------------- identity of storages


class Storages:
    """Numbers the storages of one run from 1, so that shared memory shows as an equal number.

    Each number is held with a weak reference: the storage may die, and whatever later lives at the same
    address gets a new number. Memory that torch and numpy share (`from_numpy`, `.numpy()`, DLPack) has
    one number.
    """

    def __init__(self) -> None:
        self._known: dict[Any, tuple[Any, int]] = {}
        self._count = 0
        self._borrowed = False  # whether any memory so far may have two owners
        self._purge_at = 64

    def number(self, storage: Any) -> int:
        """The number of a torch storage, or of the numpy array that owns its memory.

        Raises `TypeError` for anything that cannot be referred to weakly.
        """
        key, ref = _weak(storage)
        known = self._known.get(key)
        if known is not None and _alive(known[0]):
            return known[1]
        number = self._alias(storage) or self._new()
        self._known[key] = (ref, number)
        if len(self._known) > self._purge_at:
            self._known = {k: entry for k, entry in self._known.items() if _alive(entry[0])}
            self._purge_at = 2 * len(self._known) + 64
        return number

    def _new(self) -> int:
        self._count += 1
        return self._count

    def _alias(self, storage: Any) -> int | None:
        """The number of a live storage that occupies the same memory: only borrowed memory can."""
        self._borrowed = self._borrowed or _borrows(storage)
        here = _region(storage) if self._borrowed else None
        if here is None:
            return None
        for ref, number in self._known.values():
            there = _region(_strong(ref))
            if there and there[0] == here[0] and there[1] < here[2] and here[1] < there[2]:
                return number
        return None


def _weak(storage: Any) -> tuple[Any, Any]:
    """A key and a weak reference. Torch's keeps the storage's *address* taken, so the key stays unique."""
    if _is_array(type(storage)):
        return ("numpy", id(storage)), weakref.ref(storage)
    reductions: Any = sys.modules.get("torch.multiprocessing.reductions")
    storage = getattr(storage, "_untyped_storage", storage)  # of a TypedStorage
    if reductions is None or not hasattr(storage, "_weak_ref"):
        raise TypeError(f"{_name(type(storage))} is no storage")
    ref = reductions.StorageWeakRef(storage)
    return ref.cdata, ref


def _strong(ref: Any) -> Any:
    if type(ref) is weakref.ref:
        return ref()
    return sys.modules["torch"].UntypedStorage._new_with_weak_ptr(ref.cdata)


def _alive(ref: Any) -> bool:
    return ref() is not None if type(ref) is weakref.ref else not ref.expired()


def _borrows(storage: Any) -> bool:
    """Torch can resize what it allocated itself, and nothing else."""
    return _is_array(type(storage)) or not storage.resizable()


def _region(storage: Any) -> tuple[str, int, int] | None:
    """Device, first address and end of the memory; None where there is none."""
    if storage is None:
        return None
    if _is_array(type(storage)):
        device, start, size = "cpu", storage.__array_interface__["data"][0], storage.nbytes
    else:
        device, start, size = str(storage.device), storage.data_ptr(), storage.nbytes()
    return (device, start, start + size) if start and size else None


# ---------------------------------------------------------------------------- types, read without asking them

_MRO = type.__dict__["__mro__"].__get__
_NAMESPACE = type.__dict__["__dict__"].__get__
_MODULE = type.__dict__["__module__"].__get__
_QUALNAME = type.__dict__["__qualname__"].__get__


def _static(kind: type, name: str) -> Any:
    """The class attribute `name`, found without any descriptor or metaclass running."""
    for base in _MRO(kind):
        found = _NAMESPACE(base)
        if name in found:
            return found[name]
    return None


def _own(value: object) -> dict[str, Any]:
    """The instance's own `__dict__`, to read from; empty where there is none but a pretended one."""
    for base in _MRO(type(value)):
        getter = _NAMESPACE(base).get("__dict__")
        if type(getter) in (types.GetSetDescriptorType, types.MemberDescriptorType):  # the latter: of modules
            found = getter.__get__(value)
            if type(found) is dict:
                return found
            return dict.copy(found) if isinstance(found, dict) else {}
    return {}


def _name(kind: type) -> str:
    """The qualified name, without `builtins` and the lecture's own `__main__`."""
    return _qualified(_MODULE(kind), _QUALNAME(kind))


def _qualified(module: object, name: object) -> str:
    name = name if type(name) is str else "?"
    if type(module) is str and module not in ("builtins", "__main__"):
        name = f"{module[:TYPE_NAME]}.{name}"
    return _cleaned(name, TYPE_NAME)[0]


def _is(kind: type, known: dict[str, str]) -> bool:
    """Whether `kind` is one of the classes that `known` names by module, found without importing it."""
    for module, names in known.items():
        there = sys.modules.get(module)
        if there is not None and any(_own(there).get(name) is kind for name in names.split()):
            return True
    return False


def _cleaned(text: str, limit: int) -> tuple[str, bool]:
    """At most `limit` characters that UTF-8 can hold, and whether some were left out."""
    cut = str.__len__(text) > limit
    text = str.__getitem__(text, slice(0, limit))
    return text.encode("utf-8", "backslashreplace").decode("utf-8"), cut


# ---------------------------------------------------------------------------- foreign code, on a clock


class _TooLong(BaseException):
    """Not an `Exception`, so that `except Exception` in a foreign repr lets it through."""


class Clock:
    """Calls foreign code, and stops it when its seconds are used up.

    It borrows SIGALRM and ITIMER_REAL and gives both back as they were, an outer time limit with the time
    that then remains. An outer alarm that was due meanwhile rings right after. Signals reach the main
    thread only, so elsewhere, and where the platform has no interval timer, nothing foreign is called.
    """

    def __init__(self, seconds: float) -> None:
        self.left = seconds

    def call(self, function: Callable[[Any], Any], value: object, what: str = "repr") -> tuple[Any, str]:
        """`function(value)` and "", or None and why there is nothing, in words about `what`.

        Raises `KeyboardInterrupt` and `Stopped`, nothing else.
        """
        why = self._refusal()
        if why:
            return None, f"{what} {why}"
        started, handler = time.monotonic(), signal.getsignal(signal.SIGALRM)
        outer = signal.setitimer(signal.ITIMER_REAL, 0)
        try:
            signal.signal(signal.SIGALRM, _Bell())
            signal.setitimer(signal.ITIMER_REAL, self.left, AGAIN)
            return _foreign(function, value), ""
        except _TooLong:
            return None, f"{what} took too long"
        except (KeyboardInterrupt, Stopped):
            raise
        except BaseException as error:
            return None, f"{what} raised {_name(type(error))}"
        finally:
            used = time.monotonic() - started
            self.left -= used
            _give_back(outer, handler, used)

    def _refusal(self) -> str:
        if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
            return "is called in the main thread only"
        if signal.getsignal(signal.SIGALRM) is None:  # set by C code: it could not be given back
            return "is not called while other code holds SIGALRM"
        return "" if self.left > 0.001 else "was not called: no time was left"


def _foreign(function: Callable[[Any], Any], value: object) -> Any:
    """The one place where foreign code runs; a `_Bell` raises only below this frame."""
    return function(value)


class _Bell:
    """Raises inside the foreign call, wherever that is; rung after the call returned, it does nothing.

    Code that swallows the exception is inside its `try` again a microsecond later. So after a few rings the
    next one follows that quickly, at varied distances, until one falls between `except` and `try`.
    """

    def __init__(self) -> None:
        self.rings = 0

    def __call__(self, _signal: int, frame: types.FrameType | None) -> None:
        while frame is not None:
            if frame.f_code is _foreign.__code__:
                self.rings += 1
                if self.rings > PATIENCE:
                    signal.setitimer(signal.ITIMER_REAL, 1e-6 * (1 + self.rings % 30), AGAIN)
                raise _TooLong
            frame = frame.f_back


def _give_back(outer: tuple[float, float], handler: Any, used: float) -> None:
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, handler)
    remaining, interval = outer
    if remaining:
        signal.setitimer(signal.ITIMER_REAL, max(remaining - used, 1e-6), interval)


# ---------------------------------------------------------------------------- the walk


class _Walk:
    """One snapshot in the making: what may still be spent, and the containers it is inside of."""

    def __init__(self, storages: Storages | None, axes: tuple[str, ...] | None) -> None:
        self.storages = storages if storages is not None else Storages()
        self.axes = axes
        self.clock = Clock(SECONDS)
        self.nodes = NODES
        self.text = TEXT
        self.values = VALUES
        self.reading = NESTED_READ
        self.inside: list[int] = []

    def see(self, value: object) -> trace.Snapshot:
        """The snapshot of `value`; what cannot be read is said to be so in its place."""
        self.nodes -= 1
        try:
            return self._charged(self._seen(value, type(value)))
        except Stopped:
            raise
        except Exception as error:
            return _unreadable(type(value), error)

    def _seen(self, value: object, kind: type) -> trace.Snapshot:
        scalar = _PLAIN.get(id(kind))  # by identity: a metaclass may have a hostile __hash__
        if scalar is not None:
            return scalar(value)
        if id(kind) in _BUILTIN:
            return self._container(value, kind) or trace.Opaque(_name(kind), "")
        torch = _torch()
        if torch is not None and issubclass(kind, torch.Tensor):
            return self._tensor(torch, value, kind)
        if _is_array(kind):
            self.nodes -= 8
            return _array(value, kind, self)
        return _scalar(value, kind) or self._container(value, kind) or _Described(self.clock).see(value, kind)

    def _tensor(self, torch: Torch, value: Any, kind: type) -> trace.Snapshot:
        self.nodes -= 8
        if torch.plain(kind):
            with torch.quiet():
                return _TensorSeen(torch, value, kind, self).see()
        with torch.quiet():  # a subclass with its own dispatch may answer even `.shape` with foreign code
            found, why = self.clock.call(
                lambda t: _TensorSeen(torch, t, kind, self).see(), value, "its dispatch"
            )
        return found if found is not None else trace.Opaque(_name(kind), "", why=why)

    def _container(self, value: Any, kind: type) -> trace.Snapshot | None:
        contents = _contents(value, kind)
        if contents is None:
            return None
        name = _name(kind)
        if id(value) in self.inside:
            return trace.Opaque(name, "...", why="contains itself")
        if len(self.inside) >= DEPTH and contents.length:
            return trace.Opaque(name, f"{contents.length} items", why="nested too deep")
        self.inside.append(id(value))
        try:
            keys, items = self._children(contents)
        finally:
            self.inside.pop()
        if contents.keys is None:
            return trace.Sequence(name, contents.length, items)
        return trace.Mapping(name, contents.length, keys, items)

    def _children(self, contents: _Contents) -> tuple[tuple[trace.Snapshot, ...], tuple[trace.Snapshot, ...]]:
        """As many children as may still be spent; each leaves their share to those after it."""
        keys, items = [], []
        for i, item in enumerate(contents.items):
            if self.nodes < 2 or self.text <= 0:
                break
            share = max(2, self.nodes // (len(contents.items) - i))
            reserve, self.nodes = self.nodes - share, share
            if contents.keys is not None:
                keys.append(self.see(contents.keys[i]))
            items.append(self.see(item))
            self.nodes += reserve
        return tuple(keys), tuple(items)

    def _charged(self, shot: trace.Snapshot) -> trace.Snapshot:
        """`shot`, with a text that fits what is left."""
        self.text -= len(shot.type)
        if isinstance(shot, trace.Scalar | trace.Opaque):
            weight = _weight(shot.text)
            if weight > max(self.text, 0):
                fits = shot.text[: max(self.text, 0) * len(shot.text) // weight]
                shot = dataclasses.replace(shot, text=fits, cut=True)
            self.text -= weight
        return shot

    def may_read(self, count: int) -> bool:
        """Whether statistics may read `count` elements. What is inside a container has a budget."""
        if not self.inside:
            return True
        self.reading -= count
        return self.reading >= 0

    def may_show(self, count: int) -> bool:
        """Whether `count` more tensor values fit into this snapshot."""
        if count > self.values:
            return False
        self.values -= count
        return True


def _weight(text: str) -> int:
    """Bytes of `text` in JSON, where quotes and control characters are longer."""
    return len(json.encoder.encode_basestring(text).encode()) - 2


# ---------------------------------------------------------------------------- scalars


def _int(value: int) -> trace.Scalar:
    return _int_named("int", value)


def _int_named(name: str, value: int) -> trace.Scalar:
    """Whole up to about 600 digits; beyond, Python may refuse decimal text, so sign, leading hex and bits."""
    bits = value.bit_length()
    if bits <= SAFE_BITS:
        return trace.Scalar(name, str(value), trace.number(value))
    sign = "-" if value < 0 else ""
    return trace.Scalar(name, f"{sign}0x{abs(value) >> (bits - 64):x}… ({bits} bits)", cut=True)


def _float(value: float) -> trace.Scalar:
    return trace.Scalar("float", repr(value), trace.number(value))


def _bool(value: bool) -> trace.Scalar:
    return trace.Scalar("bool", repr(value), value)


def _text(value: str) -> trace.Scalar:
    if len(value) <= 64:
        return trace.Scalar("str", repr(value))
    return _text_named("str", value)


def _text_named(name: str, value: Any) -> trace.Scalar:
    """`repr` of the beginning of a str, bytes or bytearray, without its closing quote where it was cut."""
    base: Any = next(b for b in (str, bytes, bytearray) if issubclass(type(value), b))
    shown = base.__repr__(base.__getitem__(value, slice(0, ONE_TEXT)))
    cut = base.__len__(value) > ONE_TEXT or len(shown) > ONE_TEXT + 20
    return trace.Scalar(name, shown[: ONE_TEXT + 1] if cut else shown, cut=cut)


def _repr(value: object) -> trace.Scalar:
    """For types whose `repr` is known to be short and to run nothing foreign."""
    text, cut = _cleaned(repr(value), ONE_TEXT)
    return trace.Scalar(_name(type(value)), text, cut=cut)


_PLAIN: dict[int, Callable[[Any], trace.Scalar]] = {
    id(int): _int,
    id(float): _float,
    id(bool): _bool,
    id(str): _text,
    id(type(None)): lambda _: trace.Scalar("NoneType", "None"),
    id(complex): _repr,
    id(type(...)): _repr,
    id(type(NotImplemented)): _repr,
}

_HARMLESS = {
    "fractions": "Fraction",
    "decimal": "Decimal",
    "datetime": "date timedelta timezone",
    "pathlib": "PosixPath WindowsPath PurePosixPath PureWindowsPath",
    "uuid": "UUID",
    "torch": "dtype device layout memory_format",
}
_CLOCKS = {"datetime": "datetime time"}  # their tzinfo may be foreign
_ZONES = {"datetime": "timezone", "zoneinfo": "ZoneInfo"}


def _scalar(value: Any, kind: type) -> trace.Scalar | None:
    """Numbers, texts and the like whose exact type is not among the plain ones."""
    if _is_numpy_scalar(kind):
        return _numpy_scalar(value, kind)
    if issubclass(kind, enum.Enum):
        return _member(value, kind)
    if issubclass(kind, int):
        return _int_named(_name(kind), int.__int__(value))
    if issubclass(kind, float):
        exact = float.__float__(value)
        return trace.Scalar(_name(kind), repr(exact), trace.number(exact))
    if issubclass(kind, (str, bytes, bytearray)):
        return _text_named(_name(kind), value)
    if issubclass(kind, complex):
        return trace.Scalar(_name(kind), complex.__repr__(value))
    if _is(kind, _HARMLESS) or (_is(kind, _CLOCKS) and _knows_zone(value)):
        return _repr(value)
    return None


def _knows_zone(value: Any) -> bool:
    return value.tzinfo is None or _is(type(value.tzinfo), _ZONES)


def _member(value: Any, kind: type) -> trace.Scalar | None:
    """An enum member by its name; a flag without one is left to its `repr`."""
    name = _own(value).get("_name_")
    if type(name) is not str:
        return None
    text, cut = _cleaned(f"{_QUALNAME(kind).rpartition('.')[2]}.{name}", ONE_TEXT)
    return trace.Scalar(_name(kind), text, cut=cut)


# ---------------------------------------------------------------------------- containers


class _Contents(NamedTuple):
    length: int
    items: list[Any]  # the first `ITEMS`
    keys: list[Any] | None = None  # None for a sequence


@dataclasses.dataclass(frozen=True)
class _FieldName:
    """The name of a field, to tell `(x=1)` from `{'x': 1}`: a scalar of type "name", without quotes."""

    name: str


def _field_name(value: _FieldName) -> trace.Scalar:
    text, cut = _cleaned(value.name, TYPE_NAME)
    return trace.Scalar("name", text, cut=cut)


_PLAIN[id(_FieldName)] = _field_name

_BASES: tuple[Any, ...] = (list, collections.deque, set, frozenset)
_VIEWS: tuple[Any, ...] = (type({}.keys()), type({}.values()), type({}.items()))


def _contents(value: Any, kind: type) -> _Contents | None:
    """What is in a container of known kind, read with the base type's own methods; None for anything else."""
    if issubclass(kind, tuple):
        return _tuple(value, kind)
    if type(_static(kind, "__dataclass_fields__")) is dict:
        return _fields(value, kind)
    if issubclass(kind, dict):
        return _pairs(value)
    if _is(kind, {"torch": "finfo iinfo"}):
        return _limits(value)
    for base in _BASES:
        if issubclass(kind, base):
            members = base.__iter__(value)
            ordered = base is list or base is collections.deque
            first = list(itertools.islice(members, ITEMS)) if ordered else _in_order(members)
            return _Contents(base.__len__(value), first)
    if kind is range and -sys.maxsize < value.stop - value.start < sys.maxsize:
        return _Contents(len(value), list(value[:ITEMS]))
    if any(kind is view for view in _VIEWS):
        return _Contents(len(value), list(itertools.islice(value, ITEMS)))
    return None


_BUILTIN = {id(kind) for kind in (list, tuple, dict, set, frozenset)}


def _in_order(all_members: Iterator[Any]) -> list[Any]:
    """The first members, sorted where that is safe: the order of a set of texts differs from run to run."""
    members = list(itertools.islice(all_members, SORTED_SET + 1))
    kinds = {id(type(member)) for member in members}
    if len(members) <= SORTED_SET and kinds in ({id(str)}, {id(int)}):
        members.sort()
    return members[:ITEMS]


def _pairs(value: Any) -> _Contents:
    pairs = list(itertools.islice(dict.items(value), ITEMS))
    if issubclass(type(value), collections.OrderedDict) and _all_texts(value):
        # Only its own iterator knows of move_to_end; it hashes the keys, which is harmless for texts.
        first = list(itertools.islice(collections.OrderedDict.__iter__(value), ITEMS))
        pairs = [(key, dict.__getitem__(value, key)) for key in first]
    return _Contents(dict.__len__(value), [item for _, item in pairs], [key for key, _ in pairs])


def _all_texts(value: dict[Any, Any]) -> bool:
    return dict.__len__(value) <= SORTED_SET and all(type(key) is str for key in dict.keys(value))


def _tuple(value: tuple[Any, ...], kind: type) -> _Contents:
    """A tuple, or a named one: `namedtuple`, and the results of `torch.max(x, dim)` and the like."""
    length = tuple.__len__(value)
    names = _static(kind, "_fields")
    if names is None and _static(kind, "n_fields") is not None:
        names = _static(kind, "__match_args__")
    items = list(tuple.__getitem__(value, slice(0, ITEMS)))
    if type(names) is tuple and len(names) == length and all(type(name) is str for name in names):
        return _Contents(length, items, [_FieldName(name) for name in names[:ITEMS]])
    return _Contents(length, items)


def _fields(value: Any, kind: type) -> _Contents:
    """A dataclass instance: what its fields hold now, whether in `__dict__` or in slots."""
    own, fields = _own(value), _static(kind, "__dataclass_fields__")
    kept = (f for f in fields.values() if type(f) is dataclasses.Field and f._field_type is _FIELD)  # type: ignore[attr-defined]
    names = [f.name for f in kept if type(f.name) is str]
    found = [(name, *_held(value, kind, own, name)) for name in names[:ITEMS]]
    there = [(_FieldName(name), item) for name, has, item in found if has]
    length = len(names) - len(found) + len(there)
    return _Contents(length, [item for _, item in there], [name for name, _ in there])


_FIELD = dataclasses._FIELD  # type: ignore[attr-defined]  # tells fields from ClassVar and InitVar


def _held(value: Any, kind: type, own: dict[str, Any], name: str) -> tuple[bool, Any]:
    """Whether the field is set, and to what; a property of that name is not asked."""
    if name in own:
        return True, own[name]
    default = _static(kind, name)
    if type(default) is types.MemberDescriptorType:
        try:
            return True, default.__get__(value)
        except AttributeError:
            return False, None
    descriptor = default is None or _static(type(default), "__get__") is not None
    return (False, None) if descriptor else (True, default)


_LIMITS = ("bits", "min", "max", "eps", "tiny", "smallest_normal", "resolution", "dtype")


def _limits(value: Any) -> _Contents:
    """`torch.finfo` and `torch.iinfo`, always in the same order, so that several make one table."""
    pairs = [(name, getattr(value, name)) for name in _LIMITS if hasattr(value, name)]
    return _Contents(len(pairs), [item for _, item in pairs], [_FieldName(name) for name, _ in pairs])


# ---------------------------------------------------------------------------- all other objects

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]{4,}")  # differs from run to run and tells a reader nothing


class _Described:
    """Objects of which a record keeps a type and a text."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock

    def see(self, value: Any, kind: type) -> trace.Snapshot:
        torch = _torch()
        if issubclass(kind, type):
            return trace.Opaque(_name(kind), _name(value))
        if issubclass(kind, BaseException):
            return self._text(value, kind, str, "str")
        if any(kind is code for code in _CODE):
            return trace.Opaque(_name(kind), _code_name(value))
        if issubclass(kind, types.ModuleType):
            return trace.Opaque(_name(kind), _qualified(None, _own(value).get("__name__")))
        if torch is not None and issubclass(kind, torch.Module):
            return self._module(torch, value, kind)
        if _is(kind, {"torch": "UntypedStorage TypedStorage"}):
            return trace.Opaque(_name(kind), f"{value.nbytes()} bytes on {value.device}")
        if _static(kind, "__repr__") is object.__repr__:
            return trace.Opaque(_name(kind), f"<{_name(kind)} object>")
        return self._text(value, kind, repr)

    def _text(self, value: Any, kind: type, say: Callable[[Any], Any], what: str = "repr") -> trace.Opaque:
        text, why = self._call(say, value, what)
        if why:
            return trace.Opaque(_name(kind), "", why=why)
        text, cut = _cleaned(text, 2 * ONE_TEXT)
        text, cut_more = _cleaned(_ADDRESS.sub("", text), ONE_TEXT)
        return trace.Opaque(_name(kind), text, cut or cut_more)

    def _call(self, function: Callable[[Any], Any], value: Any, what: str) -> tuple[Any, str]:
        """As `Clock.call`, unseen by torch's modes: an object's text may print tensors."""
        torch = _torch()
        with torch.unseen() if torch is not None else nullcontext():
            return self.clock.call(function, value, what)

    def _module(self, torch: Torch, value: Any, kind: type) -> trace.Opaque:
        """`Linear(in_features=4, out_features=2, bias=True), 10 parameters`, without calling `__repr__`."""
        extra, _ = self._call(kind.extra_repr, value, "extra_repr")  # type: ignore[attr-defined]
        parts = [extra] if isinstance(extra, str) and extra else []
        children = _own(value).get("_modules") or {}
        for name, child in itertools.islice(dict.items(children), ITEMS):
            parts.append(f"{name}: {_QUALNAME(type(child))}")
        if len(children) > ITEMS:
            parts.append("…")
        text, cut = _cleaned(f"{_QUALNAME(kind)}({', '.join(parts)})", ONE_TEXT)
        return trace.Opaque(_name(kind), text + _parameters(torch, value), cut)


_CODE = (
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodType,
    types.WrapperDescriptorType,
    types.MethodDescriptorType,
    types.ClassMethodDescriptorType,
    types.MethodWrapperType,
)


def _code_name(value: Any) -> str:
    if type(value) is types.MethodType:  # a method may be bound to any callable
        return _code_name(value.__func__) if type(value.__func__) in _CODE else "?"
    return _qualified(getattr(value, "__module__", None), value.__qualname__)


def _parameters(torch: Torch, module: Any) -> str:
    """How many parameters a module has, shared ones once; nothing where some have no shape yet."""
    modules, tensors, queue = set[int](), dict[int, Any](), [module]
    while queue:
        own = _own(queue.pop())
        for tensor in dict.values(own.get("_parameters") or {}):
            if issubclass(type(tensor), torch.Tensor):
                tensors[id(tensor)] = tensor
        for child in dict.values(own.get("_modules") or {}):
            if id(child) not in modules:
                modules.add(id(child))
                queue.append(child)
    if any(_QUALNAME(type(tensor)).startswith("Uninitialized") for tensor in tensors.values()):
        return ""
    with torch.quiet():
        count = sum(torch.base.numel(tensor) for tensor in tensors.values())
    return f", {count} parameters"


# ---------------------------------------------------------------------------- numbers of tensors


def _numbers(values: list[Any], narrow: bool) -> tuple[trace.Number, ...]:
    """Values as JSON holds them; `narrow` says that they are floats of at most 32 bits."""
    if not values:
        return ()
    if type(values[0]) is complex:
        return tuple(map(repr, _narrow_complex(values) if narrow else values))
    return tuple(map(trace.number, shortest(values) if narrow else values))


def _narrow_complex(values: list[complex]) -> list[complex]:
    real, imaginary = shortest([v.real for v in values]), shortest([v.imag for v in values])
    return list(map(complex, real, imaginary))


def shortest(values: list[float]) -> list[float]:
    """Each value, a float32, as the shortest decimal that reads back to the same float32.

    So 0.1, not 0.10000000149011612. Six digits always survive (FLT_DIG, C 5.2.4.2.2), except in
    subnormals; nine are always enough.
    """
    digits = 1 if any(0 < abs(v) < 2**-126 for v in values) else 6
    found = [float(f"{v:.{digits}g}") for v in values]
    for more in range(digits + 1, 10):
        wrong = [i for i, read in enumerate(array("f", found)) if read != values[i]]
        if not wrong:
            break
        for i in wrong:
            found[i] = float(f"{values[i]:.{more}g}")
    return found


def _corner(shape: tuple[int, ...], is_complex: bool) -> tuple[int, ...]:
    """How far the kept values reach: columns and rows first, then the leading axes from the inside."""
    most = CORNER // 2 if is_complex else CORNER  # a complex value is two numbers
    corner = [1] * len(shape)
    for back, axis in enumerate(reversed(range(len(shape)))):
        reach = (COLUMNS, ROWS)[back] if back < 2 else LEADING
        corner[axis] = min(shape[axis], reach, max(most // math.prod(corner), 1))
    return tuple(corner)


# ---------------------------------------------------------------------------- statistics


class _Part(NamedTuple):
    """What one block of elements contributes. NaN and inf are counted, and left out of all the rest."""

    n: int
    low: Any = None
    high: Any = None
    mean: float = 0.0
    squares: float = 0.0  # sum of squared distances from `mean`
    total: int | None = None  # exact sum, of integers
    nan: int = 0
    inf: int = 0


def _part_of(values: list[Any]) -> _Part:
    """The same for a short list of Python numbers."""
    finite = [v for v in values if not isinstance(v, float) or math.isfinite(v)]
    nan = sum(1 for v in values if v != v)
    if not finite:
        return _Part(0, nan=nan, inf=len(values) - nan)
    mean = math.fsum(finite) / len(finite)
    squares = math.fsum((float(v) - mean) ** 2 for v in finite)
    total = None if isinstance(finite[0], float) else sum(finite)
    return _Part(
        len(finite), min(finite), max(finite), mean, squares, total, nan, len(values) - len(finite) - nan
    )


def _joined(parts: Iterator[_Part] | list[_Part]) -> _Part:
    """All parts as one; means and squares after Chan, Golub and LeVeque (1979), which loses no digits."""
    whole = _Part(0)
    for part in parts:
        nan, inf = whole.nan + part.nan, whole.inf + part.inf
        both = _merged(whole, part) if part.n and whole.n else part if part.n else whole
        whole = both._replace(nan=nan, inf=inf)
    return whole


def _merged(a: _Part, b: _Part) -> _Part:
    n, apart = a.n + b.n, b.mean - a.mean
    return _Part(
        n,
        min(a.low, b.low),
        max(a.high, b.high),
        a.mean + apart * b.n / n,
        a.squares + b.squares + apart * apart * a.n * b.n / n,
        None if a.total is None or b.total is None else a.total + b.total,
    )


def _stats(whole: _Part, repeat: int, narrow: bool) -> trace.Stats:
    """Every element counts `repeat` times. `std` is the population's: divided by the count, as numpy does."""
    nan, inf = whole.nan * repeat, whole.inf * repeat
    if not whole.n:
        return trace.Stats(nan=nan, inf=inf)
    mean = whole.mean if whole.total is None else whole.total / whole.n
    std: Any = None if isinstance(whole.low, bool) else math.sqrt(max(whole.squares, 0.0) / whole.n)
    low: Any
    high: Any
    if narrow:  # no more digits than the elements have: the rest depends on the order of summation
        low, high, mean, std = shortest(list(array("f", [whole.low, whole.high, mean, std])))
    else:
        low, high = trace.number(whole.low), trace.number(whole.high)
    return trace.Stats(low, high, _finite(mean), _finite(std), nan, inf)


def _finite(value: float | None) -> float | None:
    """None where squares or sums overflowed."""
    return value if value is not None and math.isfinite(value) else None


class _Block(NamedTuple):
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int

    @property
    def numel(self) -> int:
        return math.prod(self.shape)

    @property
    def span(self) -> int:
        """Elements from the first to the last, both included, in memory."""
        return 1 + sum((n - 1) * s for n, s in zip(self.shape, self.strides, strict=True))


def _distinct(block: _Block) -> tuple[_Block, int]:
    """The same elements in the order of memory, each once, and how often each was seen.

    Axes of stride 0 repeat elements; axes that continue one another become one. A transposed tensor so
    becomes one flat axis.
    """
    repeat = math.prod(n for n, s in zip(block.shape, block.strides, strict=True) if s == 0)
    axes = [(s, n) for n, s in zip(block.shape, block.strides, strict=True) if s and n > 1]
    merged: list[tuple[int, int]] = []
    for stride, n in sorted(axes, reverse=True):
        if merged and merged[-1][0] == stride * n:
            merged[-1] = (stride, merged[-1][1] * n)
        else:
            merged.append((stride, n))
    return _Block(tuple(n for _, n in merged), tuple(s for s, _ in merged), block.offset), repeat


def _blocks(block: _Block) -> Iterator[_Block]:
    """`block` in pieces of at most `BLOCK` elements, split along its outermost axes."""
    if block.numel <= BLOCK:
        yield block
        return
    (n, *inner), (stride, *inner_strides) = block.shape, block.strides
    step = max(1, BLOCK // math.prod(inner))
    for i in range(0, n, step):
        shape, strides = (min(step, n - i), *inner), (stride, *inner_strides)
        yield from _blocks(_unwrapped(_Block(shape, strides, block.offset + i * stride)))


def _unwrapped(block: _Block) -> _Block:
    """Without an outermost axis of length 1, so that splitting goes on inside."""
    return _Block(block.shape[1:], block.strides[1:], block.offset) if block.shape[0] == 1 else block


# ---------------------------------------------------------------------------- torch, looked up


class Torch:
    """What this room needs of torch, taken from the C base class, which subclasses cannot override."""

    def __init__(self, torch: Any) -> None:
        self.torch = torch
        self.c = torch._C
        self.base = torch._C.TensorBase
        self.Tensor = torch.Tensor
        self.Module = torch.nn.Module
        self.shape = self.base.shape.__get__
        self.dtype = self.base.dtype.__get__
        self.device = self.base.device.__get__
        self.layout = self.base.layout.__get__
        self.requires_grad = self.base.requires_grad.__get__
        self.is_quantized = self.base.is_quantized.__get__
        # Each excludes one kind of onlooker: __torch_function__ and its modes; dispatch modes such as
        # FlopCounterMode; autograd, with its hooks and version counters; functorch; autocast.
        self._guards = [
            getattr(self.c, name, nullcontext)
            for name in (
                "DisableTorchFunction",
                "_DisableTorchDispatch",
                "_AutoDispatchBelowAutograd",
                "_DisableFuncTorch",
                "_DisableAutocast",
            )
        ]

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """Operations in here are seen by no mode, hook, profiler, tracer or autograd graph."""
        function, dispatch, autograd, functorch, autocast = self._guards
        with self._unprofiled(), function(), dispatch(), autograd(), functorch(), autocast():
            tracing = self.c._get_tracing_state()
            if tracing is None:
                yield
                return
            self.c._set_tracing_state(None)
            try:
                yield
            finally:
                self.c._set_tracing_state(tracing)

    def _unprofiled(self) -> Any:
        """The profiler would list these operations among the lecture's."""
        profiler = self.torch.autograd.profiler
        return _Unprofiled(self.c) if getattr(profiler, "_is_profiler_enabled", False) else nullcontext()

    @contextmanager
    def unseen(self) -> Iterator[None]:
        """For foreign code, which needs working dispatch: no modes and no graph, all else as ever."""
        with ExitStack() as stack:
            stack.enter_context(self._unprofiled())
            stack.enter_context(self.c.DisableTorchFunction())
            stack.enter_context(self.c._DisableAutocast())
            stack.enter_context(self.torch.no_grad())
            if self.c._len_torch_dispatch_stack():
                from_here = sys.modules["torch.utils._python_dispatch"]
                stack.enter_context(from_here._disable_current_modes())
            yield

    def plain(self, kind: type) -> bool:
        """Whether no Python code stands between a tensor of this type and its metadata."""
        if kind is self.Tensor:
            return True
        owner = next((b for b in _MRO(kind) if "__torch_dispatch__" in _NAMESPACE(b)), None)
        if owner is None or owner is self.Tensor or owner is self.base:
            return True
        return self._is_disabled(_NAMESPACE(owner)["__torch_dispatch__"])

    def _is_disabled(self, dispatch: Any) -> bool:
        disabled = self.c._disabled_torch_dispatch_impl
        return dispatch is disabled or getattr(dispatch, "__func__", None) is disabled


class _Unprofiled:
    def __init__(self, c: Any) -> None:
        self.enable = c._autograd._enable_record_function

    def __enter__(self) -> None:
        self.enable(False)

    def __exit__(self, *_: object) -> None:
        self.enable(True)


_found: Torch | None = None


def _torch() -> Torch | None:
    """Torch, if the lecture has imported it, whole."""
    global _found
    module = sys.modules.get("torch")
    if module is None:
        return None
    if _found is None or _found.torch is not module:
        try:
            _found = Torch(module)
        except AttributeError:  # half imported, or something else of that name
            return None
    return _found


# ---------------------------------------------------------------------------- tensors


class _TensorSeen:
    """One tensor being read, field by field: what a kind of tensor does not have is left at its default."""

    def __init__(self, torch: Torch, tensor: Any, kind: type, walk: _Walk) -> None:
        self.torch, self.kind, self.walk = torch, kind, walk
        self.given = tensor
        self.tensor = self._unwrapped(tensor)

    def _unwrapped(self, tensor: Any) -> Any:
        """Inside `torch.func.grad` the values are in a tensor within. (Within vmap there are none to see.)"""
        functorch = self.torch.c._functorch
        while functorch.is_gradtrackingtensor(tensor):
            tensor = functorch.get_unwrapped(tensor)
        return tensor

    def see(self) -> trace.Snapshot:
        torch, it = self.torch, self.tensor
        dtype = torch.dtype(it)
        self.dtype, self.name = dtype, str(dtype).removeprefix("torch.")
        try:
            shape = tuple(torch.shape(it))
        except Exception:
            shape = (None,)
        if any(type(n) is not int for n in shape):  # nested, or traced with symbolic sizes
            return trace.Opaque(_name(self.kind), f"{self.name} tensor", why="it has no fixed shape")
        self.shape: tuple[int, ...] = shape
        self.numel = math.prod(shape)
        self.strided = torch.layout(it) is torch.torch.strided
        self.strides = self._strides()
        reals = 2 if dtype.is_complex else 1
        self.narrow = dtype.itemsize <= 4 * reals and (dtype.is_floating_point or dtype.is_complex)
        self.storage = _or(None, self._stored, it) if self.strided else None
        return self._made()

    def _stored(self, tensor: Any) -> Any:
        storage = self.torch.base.untyped_storage(tensor)
        storage.data_ptr()  # raises for what only looks like a storage, in wrappers around other tensors
        return storage

    def _strides(self) -> tuple[int, ...] | None:
        strides = _or(None, self.torch.base.stride, self.tensor) if self.strided else None
        return strides if strides is not None and all(type(s) is int for s in strides) else None

    def _made(self) -> trace.Tensor:
        base, it, walk = self.torch.base, self.tensor, self.walk
        self.offset = _or(0, base.storage_offset, it)
        axes = None if walk.inside else walk.axes
        values, corner, stats = self._values()
        return trace.Tensor(
            type=_name(self.kind),
            dtype=self.name,
            shape=self.shape,
            strides=self.strides,
            offset=self.offset,
            device=str(self.torch.device(it)),
            bytes=self._bytes(),
            storage=_or(None, walk.storages.number, self.storage),
            storage_bytes=_or(None, lambda s: s.nbytes(), self.storage),
            contiguous=self.strides is not None and _or(False, base.is_contiguous, it),
            requires_grad=_or(False, self.torch.requires_grad, self.given),
            axes=tuple(axes) if axes is not None and len(axes) == len(self.shape) else None,
            stats=stats,
            corner=corner,
            values=values,
            memory=_or(None, self._memory, values if corner is None else ()),
        )

    def _bytes(self) -> int:
        """Elements times their width; of a sparse tensor, what its parts take."""
        parts = _SPARSE.get(str(self.torch.layout(self.tensor)))
        if not parts:
            return int(self.numel * self.dtype.itemsize)
        tensors = [getattr(self.torch.base, part)(self.tensor) for part in parts]
        return sum(int(t.numel()) * int(t.element_size()) for t in tensors)

    # ------------------------------------------------------------------------ values

    def _values(self) -> tuple[tuple[trace.Number, ...], tuple[int, ...] | None, trace.Stats | None]:
        """Values, how far they reach (None: they are all there are), and statistics."""
        nothing = (), None, None
        if not self.numel or not _or(False, self._readable, ()):
            return nothing
        corner = None if self.numel <= WHOLE else _corner(self.shape, self.dtype.is_complex)
        raw = _or(None, self._read, corner or self.shape)
        shown = raw is not None and self.walk.may_show(len(raw))
        values = _numbers(raw, self.narrow) if raw is not None and shown else ()
        stats = _or(None, self._statistics, raw if corner is None else None)
        return values, corner if values else None, stats

    def _readable(self, _: Any) -> bool:
        """Whether there is memory behind this tensor, and all of it is there."""
        if self.storage is None or self.strides is None or self.torch.is_quantized(self.tensor):
            return False
        device = self.storage.device.type
        if device == "meta" or not self.storage.data_ptr() or (device == "cuda" and self._capturing()):
            return False
        last = self.offset + _Block(self.shape, self.strides, 0).span
        return bool(last * self.dtype.itemsize <= self.storage.nbytes())

    def _capturing(self) -> bool:
        """Reading back waits for the device, which would break the capture of a CUDA graph."""
        return bool(self.torch.torch.cuda.is_current_stream_capturing())

    def _read(self, reach: tuple[int, ...]) -> list[Any]:
        """The first elements of each axis, row-major, as Python numbers."""
        view = self._view(self.tensor, _Block(reach, self.strides or (), self.offset))
        return _flat(self._here(view).tolist(), len(reach))

    def _memory(self, values: tuple[trace.Number, ...]) -> tuple[trace.Number, ...] | None:
        """The whole storage in its own order, if it is small. `values` are all of the tensor's, or none."""
        count = int(self.storage.nbytes()) // int(self.dtype.itemsize) if self.storage is not None else 0
        base = self.torch.base
        if not 0 < count <= MEMORY or base.is_conj(self.tensor) or base.is_neg(self.tensor):
            return None
        if not self._readable(()) or not self.walk.may_show(count):
            return None
        if len(values) == count and base.is_contiguous(self.tensor):
            return values
        view = self._view(self.tensor, _Block((count,), (1,), 0))
        return _numbers(self._here(view).tolist(), self.narrow)

    def _view(self, tensor: Any, block: _Block) -> Any:
        return self.torch.torch.as_strided(tensor, block.shape, block.strides, block.offset)

    def _here(self, view: Any, most: int = BLOCK) -> Any:
        """`view` in main memory, without allocating on the device.

        A copy of a strided view would first be packed on the device, and a lecture that counts peak memory
        would count that too. So the contiguous run around it is copied, or one for each row if it is long.
        """
        torch = self.torch.torch
        if self.torch.device(view).type == "cpu":
            return view
        block = _Block(tuple(view.shape), view.stride(), view.storage_offset())
        if block.span <= most or not block.shape:
            run = self._copied(self._view(view, _Block((block.span,), (1,), block.offset)))
            return torch.as_strided(run, block.shape, block.strides, 0)
        return torch.stack([self._here(row, most) for row in torch.unbind(view)])

    def _copied(self, run: Any) -> Any:
        target = self.torch.torch.empty(run.shape, dtype=self.torch.dtype(run), device="cpu")
        return target.copy_(run)

    # ------------------------------------------------------------------------ statistics

    def _statistics(self, raw: list[Any] | None) -> trace.Stats | None:
        """From `raw` where that is the whole tensor, else from reading it; None if neither is sensible."""
        if self.dtype.is_complex:
            return None
        if raw is not None:
            return _stats(_part_of(raw), 1, self.narrow)
        block, repeat = _distinct(_Block(self.shape, self.strides or (), self.offset))
        if self.storage is None or block.numel * int(self.dtype.itemsize) > int(self.storage.nbytes()):
            return None  # windows that overlap: more elements than memory
        if not self.walk.may_read(block.numel):
            return None
        return _stats(_joined(self._parts(block)), repeat, self.narrow)

    def _parts(self, block: _Block) -> Iterator[_Part]:
        torch = self.torch.torch
        tensor, work, bias = self._workable()
        reader = _Reader(torch, work, min(block.numel, BLOCK))
        for piece in _blocks(block):
            if self.torch.device(tensor).type != "cpu" and piece.span > 16 * piece.numel:
                raise ValueError("too thinly spread over the device's memory to be copied")
            yield reader.part(self._here(self._view(tensor, piece), 16 * BLOCK), bias, self.name == "bool")

    def _workable(self) -> tuple[Any, Any, int]:
        """The tensor, the dtype to compute in, and what to add to results: not every dtype has reductions."""
        torch, it = self.torch.torch, self.tensor
        if self.dtype.is_floating_point:
            return it, torch.float32 if self.narrow else torch.float64, 0
        if self.name == "bool":
            return torch.Tensor.view(it, torch.uint8), torch.uint8, 0
        if self.name == "uint64":  # flip the top bit: then the order is that of int64
            return torch.Tensor.view(it, torch.int64), torch.int64, 2**63
        return it, torch.int64 if self.name.startswith("uint") and self.name != "uint8" else self.dtype, 0


class _Reader:
    """Reads blocks for statistics, always into the same scratch memory."""

    def __init__(self, torch: Any, work: Any, most: int) -> None:
        self.torch, self.work, self.most = torch, work, most
        centred = work if work.is_floating_point else torch.float64
        self.scratch = torch.empty(most, dtype=centred, device="cpu")
        self.guess: float | None = None  # the last block's mean: close enough, and saves a pass
        self.stage: Any = None

    def part(self, block: Any, bias: int, is_bool: bool) -> _Part:
        flat = self._flat(block, bias)
        if self.work.is_floating_point:
            return self._floats(flat)
        part = self._integers(flat, bias)
        return part._replace(low=bool(part.low), high=bool(part.high)) if is_bool else part

    def _flat(self, block: Any, bias: int) -> Any:
        """The block as one contiguous axis of the working dtype; most already are."""
        ready = block.ndim == 1 and block.stride(0) == 1 and block.dtype is self.work
        if ready and not bias and not block.is_neg():
            return block
        if self.stage is None:
            self.stage = self.torch.empty(self.most, dtype=self.work, device="cpu")
        flat = self.stage[: block.numel()]
        flat.view(block.shape).copy_(block)
        return flat.bitwise_xor_(-(2**63)) if bias else flat

    def _floats(self, flat: Any) -> _Part:
        low, high = (v.item() for v in self.torch.aminmax(flat))
        if not -math.inf < low <= high < math.inf:
            return self._without_specials(flat)
        about = self.guess if self.guess is not None else flat.mean().item()
        mean, squares = self._spread(flat, about, self.scratch)
        if not math.isfinite(squares) and flat.dtype is self.torch.float32:  # a square overflowed
            wide = flat.to(self.torch.float64)
            mean, squares = self._spread(wide, wide.mean().item(), self.torch.empty_like(wide))
        self.guess = mean
        return _Part(flat.numel(), low, high, mean, squares)

    def _without_specials(self, flat: Any) -> _Part:
        nan, inf = int(flat.isnan().sum()), int(flat.isinf().sum())
        finite = flat[flat.isfinite()]
        part = self._floats(finite) if finite.numel() else _Part(0)
        return part._replace(nan=nan, inf=inf)

    def _spread(self, flat: Any, about: float, scratch: Any) -> tuple[float, float]:
        """Mean, and squares about it, from distances to a first guess: so few digits cancel."""
        count = flat.numel()
        apart = scratch[:count]
        self.torch.sub(flat, about, out=apart) if flat.dtype is apart.dtype else apart.copy_(flat).sub_(about)
        # Not dot(): BLAS adds up in a row and lost 5 digits of a float32 variance; sum() adds pairwise.
        left, squares = apart.sum().item(), apart.mul_(apart).sum().item()
        return about + left / count, squares - left * left / count

    def _integers(self, flat: Any, bias: int) -> _Part:
        low, high = (v.item() for v in self.torch.aminmax(flat))
        count = flat.numel()
        total = self._total(flat, max(abs(low), abs(high)) * count)
        mean, squares = self._spread(flat, total / count, self.scratch)
        return _Part(count, low + bias, high + bias, mean + bias, squares, total + bias * count)

    def _total(self, flat: Any, bound: int) -> int:
        """The exact sum: in two halves where 64 bits might not hold it."""
        if bound < 2**63:
            return int(flat.sum())
        return (int((flat >> 32).sum()) << 32) + int((flat & 0xFFFFFFFF).sum())


_SPARSE = {
    "torch.sparse_coo": ("_indices", "_values"),
    "torch.sparse_csr": ("crow_indices", "col_indices", "values"),
    "torch.sparse_bsr": ("crow_indices", "col_indices", "values"),
    "torch.sparse_csc": ("ccol_indices", "row_indices", "values"),
    "torch.sparse_bsc": ("ccol_indices", "row_indices", "values"),
}


def _or(default: Any, read: Callable[[Any], Any], it: Any) -> Any:
    """`read(it)`, or `default` where this kind of tensor has no such thing."""
    try:
        return read(it)
    except Stopped:
        raise
    except Exception:
        return default


def _flat(nested: Any, depth: int) -> list[Any]:
    if not depth:
        return [nested]
    for _ in range(depth - 1):
        nested = list(itertools.chain.from_iterable(nested))
    return list(nested)


# ---------------------------------------------------------------------------- numpy, looked up


def _numpy() -> Any:
    module = sys.modules.get("numpy")
    return module if hasattr(module, "ndarray") and hasattr(module, "generic") else None


def _is_array(kind: type) -> bool:
    numpy = _numpy()
    return bool(numpy is not None and issubclass(kind, numpy.ndarray))


def _is_numpy_scalar(kind: type) -> bool:
    """Numpy's own scalar types, and no subclass of them."""
    numpy = _numpy()
    return numpy is not None and issubclass(kind, numpy.generic) and _own(numpy).get(_QUALNAME(kind)) is kind


def _numpy_scalar(value: Any, kind: type) -> trace.Scalar:
    """`np.float32(0.1)`; texts and bytes as such."""
    numpy = _numpy()
    if issubclass(kind, (str, bytes)):
        return _text_named(_name(kind), value)
    text, cut = _cleaned(repr(value), ONE_TEXT)
    number: trace.Number | None = None
    if value.dtype.kind in "biuf":
        narrow = value.dtype.kind == "f" and value.dtype.itemsize <= 4
        item = float(value) if isinstance(value, numpy.longdouble) else value.item()
        number = _numbers([item], narrow)[0]
    return trace.Scalar(_name(kind), text, number, cut)


def _array(value: Any, kind: type, walk: _Walk) -> trace.Tensor:
    """A numpy array, with sizes and strides in elements as for tensors."""
    numpy = _numpy()
    it = numpy.ndarray.view(value, numpy.ndarray)  # sheds subclasses; calls none of their code
    owner = _owner(value, numpy)
    axes = None if walk.inside else walk.axes
    numeric = it.dtype.kind in "biufc" and it.dtype.fields is None
    values, corner, stats = _array_values(it, walk) if numeric and it.size else ((), None, None)
    return trace.Tensor(
        type=_name(kind),
        dtype=_cleaned(str(it.dtype.name), TYPE_NAME)[0],
        shape=it.shape,
        strides=_array_strides(it),
        offset=(_address(it) - _address(owner)) // max(it.itemsize, 1) if it.size else 0,
        bytes=it.nbytes,
        storage=_or(None, walk.storages.number, owner),
        storage_bytes=owner.nbytes,
        contiguous=it.flags.c_contiguous,
        axes=tuple(axes) if axes is not None and len(axes) == it.ndim else None,
        stats=stats,
        corner=corner,
        values=values,
        memory=_array_memory(owner, it, walk) if numeric else None,
    )


def _owner(value: Any, numpy: Any) -> Any:
    """The array at the end of the chain of views."""
    while issubclass(type(base := numpy.ndarray.base.__get__(value)), numpy.ndarray):
        value = base
    return value


def _address(it: Any) -> int:
    return int(_numpy().ndarray.__array_interface__.__get__(it)["data"][0])


def _array_strides(it: Any) -> tuple[int, ...] | None:
    width = it.itemsize
    if not width or any(s % width for s in it.strides):
        return None  # a field of a record array, say
    return tuple(s // width for s in it.strides)


def _is_narrow(it: Any) -> bool:
    return bool(it.itemsize <= {"f": 4, "c": 8}.get(it.dtype.kind, 0))


def _array_values(
    it: Any, walk: _Walk
) -> tuple[tuple[trace.Number, ...], tuple[int, ...] | None, trace.Stats | None]:
    corner = None if it.size <= WHOLE else _corner(it.shape, it.dtype.kind == "c")
    raw = _array_list(it[tuple(slice(0, n) for n in corner or it.shape)])
    values = _numbers(raw, _is_narrow(it)) if walk.may_show(len(raw)) else ()
    stats = _or(None, lambda a: _array_stats(a, raw if corner is None else None, walk), it)
    return values, corner if values else None, stats


def _array_list(it: Any) -> list[Any]:
    if it.dtype.kind in "fc" and it.itemsize > 8 * (1 + (it.dtype.kind == "c")):  # longdouble
        it = it.astype("c16" if it.dtype.kind == "c" else "f8")
    return list(it.ravel().tolist())


def _array_memory(owner: Any, it: Any, walk: _Walk) -> tuple[trace.Number, ...] | None:
    owner = owner.view(_numpy().ndarray)
    flat = owner.flags.c_contiguous or owner.flags.f_contiguous
    if not flat or owner.dtype != it.dtype or not 0 < owner.size <= MEMORY or not walk.may_show(owner.size):
        return None
    return _numbers(_array_list(owner.ravel(order="K")), _is_narrow(it))


def _array_stats(it: Any, raw: list[Any] | None, walk: _Walk) -> trace.Stats | None:
    if it.dtype.kind == "c":
        return None
    if raw is not None:
        return _stats(_part_of(raw), 1, _is_narrow(it))
    repeat = math.prod(n for n, s in zip(it.shape, it.strides, strict=True) if s == 0)
    it = it[tuple(slice(None, None, (s > 0) - (s < 0)) if s else slice(0, 1) for s in it.strides)]
    if it.nbytes > _owner(it, _numpy()).nbytes or not walk.may_read(it.size):
        return None
    # In the order of memory: the longest stride outermost.
    it = it.transpose(sorted(range(it.ndim), key=lambda axis: -it.strides[axis]))
    with _numpy().errstate(all="ignore"):
        return _stats(_joined(_array_parts(it)), repeat, _is_narrow(it))


def _array_parts(it: Any) -> Iterator[_Part]:
    """Blocks of the outermost axes, each small enough to be copied."""
    if it.size <= BLOCK:
        yield _array_part(it.ravel())
        return
    inner = it.size // it.shape[0]
    step = max(1, BLOCK // inner)
    for i in range(0, it.shape[0], step):
        yield from _array_parts(it[i : i + step] if inner <= BLOCK else it[i])


def _array_part(flat: Any) -> _Part:
    if flat.dtype.kind == "b":
        part = _array_part(flat.view("u1"))
        return part._replace(low=bool(part.low), high=bool(part.high))
    if flat.dtype.kind == "f":
        return _array_floats(flat.astype("f4" if flat.itemsize <= 4 else "f8", copy=False))
    low, high, n = flat.min().item(), flat.max().item(), flat.size
    total = _array_total(flat, max(abs(low), abs(high)) * n)
    mean, squares = _array_spread(flat.astype("f8"), total / n)
    return _Part(n, low, high, mean, squares, total)


def _array_floats(flat: Any) -> _Part:
    low, high = flat.min().item(), flat.max().item()
    if not -math.inf < low <= high < math.inf:
        return _array_without_specials(flat)
    mean, squares = _array_spread(flat, flat.mean())
    if not math.isfinite(squares) and flat.itemsize == 4:  # a square overflowed
        return _array_floats(flat.astype("f8"))
    return _Part(flat.size, low, high, mean, squares)


def _array_without_specials(flat: Any) -> _Part:
    numpy = _numpy()
    nan, inf = int(numpy.isnan(flat).sum()), int(numpy.isinf(flat).sum())
    finite = flat[numpy.isfinite(flat)]
    part = _array_floats(finite) if finite.size else _Part(0)
    return part._replace(nan=nan, inf=inf)


def _array_spread(flat: Any, about: Any) -> tuple[float, float]:
    """As `_Reader._spread`."""
    apart = flat - about
    left = apart.sum().item()
    apart *= apart
    squares = apart.sum().item()
    return float(about) + left / flat.size, squares - left * left / flat.size


def _array_total(flat: Any, bound: int) -> int:
    """The exact sum: in two halves where 64 bits might not hold it."""
    if bound < 2**63:
        return int(flat.sum(dtype="u8" if flat.dtype.kind == "u" else "i8"))
    return (int((flat >> 32).sum()) << 32) + int((flat & 0xFFFFFFFF).sum())

"""Types, instances and texts, read without asking them.

What `type()` says decides, and everything is fetched with the base types' own methods, so no property, no
`__getattr__`, no metaclass and no overridden method of the object runs. This module knows no values and no
snapshots; of libraries it knows only the names in `sys.modules`.
"""

from __future__ import annotations

import sys
import types
from typing import Any

from litbook.record.limits import ONE_TEXT, TYPE_NAME

MRO = type.__dict__["__mro__"].__get__
NAMESPACE = type.__dict__["__dict__"].__get__
QUALNAME = type.__dict__["__qualname__"].__get__
_MODULE = type.__dict__["__module__"].__get__


def static_attribute(kind: type, attribute: str) -> Any:
    """The class attribute, found without any descriptor or metaclass running; None where there is none."""
    for base in MRO(kind):
        namespace = NAMESPACE(base)
        if attribute in namespace:
            return namespace[attribute]
    return None


def dict_of(value: object) -> dict[str, Any]:
    """The instance's own `__dict__`, to read from; empty where there is none but a pretended one."""
    for base in MRO(type(value)):
        getter = NAMESPACE(base).get("__dict__")
        if type(getter) in (types.GetSetDescriptorType, types.MemberDescriptorType):  # the latter: of modules
            fields = getter.__get__(value)
            if type(fields) is dict:
                return fields
            return dict.copy(fields) if isinstance(fields, dict) else {}
    return {}


def is_one_of(kind: type, classes: dict[str, str]) -> bool:
    """Whether `kind` is one of the classes that `classes` names by module, found without importing it."""
    for module, names in classes.items():
        there = sys.modules.get(module)
        if there is not None and any(dict_of(there).get(name) is kind for name in names.split()):
            return True
    return False


def name_of(kind: type) -> str:
    """The qualified name, without `builtins` and the lecture's own `__main__`."""
    return qualified_name(_MODULE(kind), QUALNAME(kind))


def qualified_name(module: object, name: object) -> str:
    name = name if type(name) is str else "?"
    if type(module) is str and module not in ("builtins", "__main__"):
        name = f"{module[:TYPE_NAME]}.{name}"
    return clean_text(name, TYPE_NAME)[0]


def clean_text(text: str, limit: int = ONE_TEXT) -> tuple[str, bool]:
    """At most `limit` characters that UTF-8 can hold, and whether some were left out."""
    cut = str.__len__(text) > limit
    text = str.__getitem__(text, slice(0, limit))
    return text.encode("utf-8", "backslashreplace").decode("utf-8"), cut

"""What is inspected: a file, bytes, an open pack, a record, arrays or a module, as one value."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from bpk_lite.convert import Contents, open_contents
from bpk_lite.pack import (
    ByteSource,
    BytesSource,
    InvalidMagicNumber,
    Reader,
    Tensor,
    Writer,
)
from bpk_lite.records import Record

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Snippet", "Subject"]

_MAGIC: Final = b"NRUB"
_IMPORT: Final = "import bpk_lite as bpk"
_BY_NAME: Final = "next(t for t in contents.tensors if t.name == {name})"


@dataclass(frozen=True, slots=True)
class Snippet:
    """The Python that gets at a tensor.

    Attributes:
        imports: lines of imports.
        open: lines that open the file, each with its line end; may be empty.
        item: an expression with ``{name}`` where the tensor's name goes, as a literal.
    """

    imports: str
    open: str
    item: str


@dataclass(frozen=True, slots=True, eq=False)
class Subject:
    """Something with tensors by name.

    Attributes:
        name: what to call it: a path, or where it came from.
        content: what `bpk_lite.inspect.summarize` describes.
        origin: in words, for what is no file: ``"arrays in memory"``.
        snippet: how to get at a tensor.
        owned: whether it was opened here, so that `close` closes it.
        size: bytes of the file, or None.
    """

    name: str
    content: Reader | Contents
    snippet: Snippet
    origin: str = ""
    owned: bool = False
    size: int | None = None
    _by_name: dict[str, Tensor] = field(default_factory=dict)

    @classmethod
    def of(cls, source: Any, name: str | None = None) -> Subject:
        """Return what `source` is as a subject. Reads no tensor data.

        Args:
            source: a path, bytes, a `ByteSource`, an open `Reader`, `Contents`, a record, a mapping
                from name to array, a module of torch or of `bpk_lite.nn`.
            name: what to call it instead of its own name.

        Raises:
            TypeError: it is none of these.
            BpkError: it cannot be opened; see `open_contents`.
        """
        if isinstance(source, Subject):
            return source
        if isinstance(source, Reader):
            label = name or source.source.name
            opened = source.source.name
            return cls(
                label, source, _pack_snippet(opened), _not_a_file(opened), size=source.nbytes
            )
        if isinstance(source, Contents):
            return cls(name or "contents", source, Snippet("", "", _BY_NAME))
        if isinstance(source, Record):
            content = Contents("burnpack", list(source.tensors.values()))
            content.scalars.update(source.scalars)
            content.metadata.update(source.metadata)
            label = type(source).__name__
            return cls(name or label, content, Snippet("", "", "record.tensors[{name}]"), label)
        if isinstance(source, str) or hasattr(source, "__fspath__"):
            return _file(cls, source, name)
        if isinstance(source, Mapping):
            content = Contents("burnpack", list(Writer(source).tensors))
            return cls(
                name or "arrays", content, Snippet("", "", "arrays[{name}]"), "arrays in memory"
            )
        if hasattr(source, "state_dict") and hasattr(source, "named_parameters"):
            tensors = [_torch_tensor(*item) for item in source.state_dict().items()]
            label = type(source).__name__
            return cls(
                name or label,
                Contents("burnpack", [tensor for tensor in tensors if tensor is not None]),
                Snippet("", "", "module.state_dict()[{name}]"),
                "PyTorch module",
            )
        if hasattr(source, "into_record"):
            return cls.of(source.into_record(), name or type(source).__name__)
        if isinstance(source, ByteSource):
            return _source(cls, source, name)
        try:
            memory = BytesSource(source)
        except TypeError:
            raise TypeError(
                "expected a path, bytes, a Reader, a record, a mapping from name to array, or a "
                f"module, not {type(source).__name__}"
            ) from None
        return _source(cls, memory, name)

    def tensor(self, name: str) -> Tensor:
        """Return a tensor.

        Raises:
            TensorNotFound, KeyError: there is none of that name.
        """
        if isinstance(self.content, Reader):
            return self.content[name]
        if not self._by_name:
            self._by_name.update({tensor.name: tensor for tensor in self.content.tensors})
        return self._by_name[name]

    def close(self) -> None:
        """Close the file, if it was opened here."""
        if self.owned:
            self.content.close()


def _file(make: Callable[..., Subject], path: Any, name: str | None) -> Subject:
    text = path if isinstance(path, str) else path.__fspath__()
    if isinstance(text, bytes):
        text = text.decode(errors="replace")
    try:
        pack = Reader.from_file(path)
    except InvalidMagicNumber:
        content = open_contents(path)
        opening = f"contents = bpk.convert.open_contents({json.dumps(text)})\n"
        return make(name or text, content, Snippet(_IMPORT, opening, _BY_NAME), owned=True)
    label = name or pack.source.name
    return make(label, pack, _pack_snippet(text), owned=True, size=pack.nbytes)


def _source(make: Callable[..., Subject], source: ByteSource, name: str | None) -> Subject:
    label = name or source.name
    given = "data" if label.startswith("<") else json.dumps(label)
    # a pack stays a reader, which can be verified too
    if bytes(source.read_at(0, min(len(_MAGIC), source.size))) == _MAGIC:
        opening = f"pack = bpk.open({given})\n"
        snippet = Snippet(_IMPORT, opening, "pack[{name}]")
        return make(label, Reader.from_source(source), snippet, owned=True, size=source.size)
    opening = f"contents = bpk.convert.open_contents({given})\n"
    size, snippet = source.size, Snippet(_IMPORT, opening, _BY_NAME)
    return make(label, open_contents(source), snippet, owned=True, size=size)


def _pack_snippet(path: str) -> Snippet:
    if _not_a_file(path):
        return Snippet("", "", "pack[{name}]")
    return Snippet(_IMPORT, f"pack = bpk.open({json.dumps(path)})\n", "pack[{name}]")


def _not_a_file(name: str) -> str:
    return "pack in memory" if name.startswith("<") else ""


def _torch_tensor(name: str, value: Any) -> Tensor | None:
    """Return an entry of a state dict; extra state that is no tensor has no place here."""
    if not hasattr(value, "__dlpack__"):
        return None
    return Tensor.from_array(name, value.detach().cpu())

"""torch modules, optimizers and schedulers as sources and targets of Burn's records.

``import bpk_lite.torch as bt``. Needs torch 2.4 or newer, which is imported here and nowhere else::

    bt.into_record(module).save("net")
    bt.load_record(module, ModuleRecord.load("net"))
    bt.optim_into_record(optimizer, module).save("optim")

Names and layouts are Burn's, by the type of each module: a linear weight lies transposed in a
record. `save_file` and `load_file` change neither.
"""

from bpk_lite.torch._file import load_file, save_file
from bpk_lite.torch._lr import load_scheduler_record, scheduler_into_record
from bpk_lite.torch._module import into_record, load_record
from bpk_lite.torch._optim import optim_into_record
from bpk_lite.torch._optim_load import load_optim_record
from bpk_lite.torch._pieces import LayoutWarning, ModuleLayout, Piece, layout
from bpk_lite.torch._store import StoreTarget
from bpk_lite.torch._transfer import deferred_tensor

__all__ = [
    "LayoutWarning",
    "ModuleLayout",
    "Piece",
    "StoreTarget",
    "deferred_tensor",
    "into_record",
    "layout",
    "load_file",
    "load_optim_record",
    "load_record",
    "load_scheduler_record",
    "optim_into_record",
    "save_file",
    "scheduler_into_record",
]

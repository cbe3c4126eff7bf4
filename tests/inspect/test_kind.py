"""Which record a pack is, by real Burn's files and by made names (R1, R51, R62)."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import bpk_lite as bpk
from bpk_lite.inspect import summarize
from bpk_lite.pack import Reader

BURN = Path(__file__).parent.parent / "fixtures" / "burn"
RECORDS = sorted((BURN / "records").rglob("*.bpk"))
# the file's name says what Burn saved; the first pattern that matches says what we must find
EXPECTED = (
    (r"^optim_adam\w*amsgrad", r"^optimizer record: Adam or AdamW with AMSGrad$"),
    (r"^optim_adamw?_", r"^optimizer record: Adam or AdamW$"),
    (r"^optim_adan", r"^optimizer record: Adan$"),
    (r"^optim_adagrad", r"^optimizer record: AdaGrad$"),
    (r"^optim_adafactor", r"^optimizer record: Adafactor$"),
    (r"^optim_rmsprop", r"^optimizer record: RMSProp$"),
    (r"^optim_lamb", r"^optimizer record: LAMB$"),
    (r"^optim_lion", r"^optimizer record: Lion$"),
    (r"^optim_lbfgs", r"^optimizer record: L-BFGS$"),
    (r"^optim_muon", r"^optimizer record: SGD with momentum, or Muon$"),
    (r"^optim_sgd_(clip|wd|[0-9])", r"^optimizer record: SGD without momentum$"),
    (r"^optim_sgd", r"^optimizer record: SGD with"),
    (r"^optim_groups", r"^optimizer record: .*"),
    (r"^optim_", r"^optimizer record"),
    (r"^sched_(composed_empty|constant|number)", r"^empty"),
    (r"^sched_linear", r"scheduler record: linear$"),
    (r"^sched_cosine", r"scheduler record: cosine$"),
    (r"^sched_exponential", r"scheduler record: exponential$"),
    (r"^sched_step", r"scheduler record: step$"),
    (r"^sched_noam", r"scheduler record: noam, or sequential$"),
    (r"^sched_", r"scheduler record: "),
    (r"^module_(group_none|hollow)", r"^empty"),
    (r"^module_", r"^module record$"),
)


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
def test_burns_records_are_recognized(path):
    """Each file of real Burn is called what it is."""
    with Reader.from_bytes(path.read_bytes()) as pack:
        kind = summarize(pack).kind
    wanted = next((kind for name, kind in EXPECTED if re.search(name, path.stem)), None)
    assert wanted is not None, path.stem
    assert re.search(wanted, kind), kind


@pytest.mark.parametrize(
    ("tensors", "metadata", "scalars", "kind"),
    [
        ({"w": np.ones(1)}, {}, {}, "tensors of no record"),
        ({"w": np.ones(1)}, {"format": "burnpack", "producer": "burn"}, {}, "burn's store"),
        ({}, {}, {"epoch": 1}, "scalars of no record"),
        ({}, {}, {}, "empty"),
        ({"7.momentum": np.ones(1), "8.momentum.velocity": np.ones(1)}, {},
         {"7.__rank": 1, "8.__rank": 1}, "Lion; SGD with momentum, or Muon"),
        ({"7.other": np.ones(1)}, {}, {"7.__rank": 1}, "optimizer record: unknown"),
    ],
)  # fmt: skip
def test_what_is_no_record_of_burns(tensors, metadata, scalars, kind):
    """Plain files and mixtures are told apart."""
    blob = bpk.save(tensors, metadata, scalars=scalars)
    assert kind in summarize(Reader.from_bytes(blob)).kind

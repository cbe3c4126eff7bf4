"""Learning-rate schedulers with Burn's formulas, in binary64, bit for bit (R62 to R70, R109, R110).

``lr = scheduler.step()`` before each step of the optimizer; the first call gives the first rate. A
record of any scheduler is the one that training in Burn writes, which wraps even a single scheduler
under the index ``0.`` (R64).
"""

from bpk_lite.optim.lr._base import Scheduler
from bpk_lite.optim.lr._compose import Composed, Sequential
from bpk_lite.optim.lr._kinds import Constant, Cosine, Exponential, Linear, Noam, Step
from bpk_lite.optim.lr._module import ModuleScheduler, Rates

__all__ = [
    "Composed",
    "Constant",
    "Cosine",
    "Exponential",
    "Linear",
    "ModuleScheduler",
    "Noam",
    "Rates",
    "Scheduler",
    "Sequential",
    "Step",
]

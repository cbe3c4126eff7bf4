"""L-BFGS on all float params at once (R57, R58, R98)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from bpk_lite.optim._line_search import Point, strong_wolfe
from bpk_lite.optim._numbers import Array, scalar
from bpk_lite.pack import RecordError, Scalar, Tensor
from bpk_lite.records import OptimizerRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from bpk_lite.nn import Module, Param

__all__ = ["Lbfgs"]

_CURVATURE = 1e-10  # a pair with less is no use to the history


class Lbfgs:
    """Limited-memory BFGS.

    All float params that take gradients are one vector, in traversal order, in their own dtype;
    scalars are binary64. Agrees with Burn to 5e-6 and in the number of evaluations.

    Args:
        module: the module that is stepped.
        lr: learning rate of steps that are given none.
        max_iter: iterations of a step.
        history_size: pairs that are remembered.
        tolerance_grad: largest gradient element at which a step ends.
        tolerance_change: change of params or loss at which a step ends.
        max_eval: evaluations of a step; max_iter * 5 / 4 by default.
        line_search: ``"strong_wolfe"`` or None.

    Raises:
        ValueError: another line search.
    """

    def __init__(
        self,
        module: Module,
        lr: float = 1.0,
        *,
        max_iter: int = 20,
        history_size: int = 100,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        max_eval: int | None = None,
        line_search: Literal["strong_wolfe"] | None = None,
    ) -> None:
        if line_search not in (None, "strong_wolfe"):
            raise ValueError(f"line_search is None or 'strong_wolfe', not {line_search!r}")
        self.module = module
        self.lr = lr
        self.max_iter = max_iter
        self.history_size = history_size
        self.tolerance_grad = tolerance_grad
        self.tolerance_change = tolerance_change
        self.max_eval = max_iter * 5 // 4 if max_eval is None else max_eval
        self.line_search = line_search
        self._s: list[Array] = []
        self._y: list[Array] = []
        self._d: Array | None = None
        self._t: float | None = 1.0
        self._prev_grad: Array | None = None
        self._prev_loss: float | None = None
        self._g_iter = 0

    def step(
        self,
        closure: Callable[[Module], tuple[float, Mapping[str, Any]]],
        lr: float | None = None,
    ) -> float:
        """Improve the params; return the last loss.

        Args:
            closure: takes the module; returns the loss and a gradient for each float param by path.
            lr: learning rate; by default ``self.lr``.

        Raises:
            KeyError: the closure left a param without a gradient.
            ValueError: a gradient of another shape; a state of another size (R114).
        """
        rate = self.lr if lr is None else lr
        params = self._params()
        start = _flatten([param.value for param in params.values()])
        if self._prev_grad is not None and self._prev_grad.size != start.size:
            raise ValueError(
                f"the state is for {self._prev_grad.size} elements, the module has {start.size}"
            )
        evaluations = 0

        def evaluate(values: Array) -> tuple[float, Array]:
            nonlocal evaluations
            evaluations += 1
            _assign(params, values)
            loss, grads = closure(self.module)
            return float(loss), _flatten([_fitting(grads, p, params[p]) for p in params])

        x = start
        loss, grad = evaluate(x)
        if _largest(grad) <= self.tolerance_grad:
            return loss
        direction, t = (-grad if self._d is None else self._d), rate if self._t is None else self._t
        previous_loss = self._prev_loss
        for _ in range(self.max_iter):
            self._g_iter += 1
            direction = self._direction(grad, direction, t)
            self._prev_grad, previous_loss = grad, loss
            t = min(1.0, 1.0 / float(np.sum(np.abs(grad)))) * rate if self._g_iter == 1 else rate
            slope = _dot(grad, direction)
            if slope > -self.tolerance_change:
                break
            if self.line_search is None:
                x = x + direction * scalar(t, x)
                loss, grad = evaluate(x)
            else:
                t, loss, grad = self._searched(
                    evaluate, x, direction, Point(0.0, loss, slope, grad), t, evaluations
                )
                x = x + direction * scalar(t, x)
                _assign(params, x)
            if (
                evaluations >= self.max_eval
                or _largest(grad) <= self.tolerance_grad
                or _largest(direction * scalar(t, x)) <= self.tolerance_change
                or abs(loss - previous_loss) < self.tolerance_change
            ):
                break
        self._d, self._t, self._prev_loss = direction, t, previous_loss
        return loss

    def _searched(
        self,
        evaluate: Callable[[Array], tuple[float, Array]],
        x: Array,
        direction: Array,
        start: Point,
        step: float,
        evaluations: int,
    ) -> tuple[float, float, Array]:
        def at(t: float) -> Point:
            loss, grad = evaluate(x + direction * scalar(t, x))
            return Point(t, loss, _dot(grad, direction), grad)

        found = strong_wolfe(
            at,
            start,
            step,
            tolerance=self.tolerance_change / max(_largest(direction), 1e-300),
            trials=self.max_eval - evaluations,
        )
        return found.step, found.loss, found.grad

    def _direction(self, grad: Array, direction: Array, t: float) -> Array:
        """Return the next direction; remember what the last step taught."""
        if self._g_iter == 1:
            self._s, self._y = [], []
            return -grad
        if self._prev_grad is not None:
            y, s = grad - self._prev_grad, direction * scalar(t, grad)
            if _dot(y, s) > _CURVATURE:
                full = len(self._y) >= self.history_size  # one goes for one: Burn cuts no more
                self._y = [*self._y[full:], y]
                self._s = [*self._s[full:], s]
        if not self._y:
            return -grad
        weights = []
        q: Array = -grad
        for s, y in zip(reversed(self._s), reversed(self._y), strict=True):
            weight = _dot(s, q) / _dot(y, s)
            weights.append(weight)
            q = q - y * scalar(weight, q)
        s, y = self._s[-1], self._y[-1]
        q = q * scalar(_dot(y, s) / _dot(y, y), q)
        for s, y, weight in zip(self._s, self._y, reversed(weights), strict=True):
            q = q + s * scalar(weight - _dot(y, q) / _dot(y, s), q)
        return q

    def into_record(self) -> OptimizerRecord:
        """Return the state: one for the whole module, without prefix, ids or metadata (R57)."""
        arrays = {f"history_s.{i}": s for i, s in enumerate(self._s)}
        arrays |= {f"history_y.{i}": y for i, y in enumerate(self._y)}
        if self._d is not None:
            arrays["d"] = self._d
        if self._prev_grad is not None:
            arrays["prev_flat_grad"] = self._prev_grad
        scalars = {
            "history_s.len": Scalar("UInt", len(self._s)),
            "history_y.len": Scalar("UInt", len(self._y)),
        }
        if self._t is not None:
            scalars["t"] = Scalar("Float", float(self._t))
        if self._prev_loss is not None:
            scalars["prev_loss"] = Scalar("Float", float(self._prev_loss))
        scalars["g_iter"] = Scalar("UInt", self._g_iter)
        tensors = [Tensor.from_array(name, array) for name, array in arrays.items()]
        return OptimizerRecord(tensors, scalars=scalars)

    def load_record(self, record: OptimizerRecord) -> None:
        """Take the state from a record; an optional number that does not convert is absent (R41).

        Raises:
            RecordError: `g_iter` or a history is missing or incomplete, as in the record of another
                optimizer, or the histories are of two lengths; the state is unchanged, and Burn
                says nothing then (R58).
        """
        size = sum(param.size for param in self._params().values())
        s, y = (_history(record, name, size) for name in ("history_s", "history_y"))
        if len(s) != len(y):  # Burn pairs them up all the same, or panics at the next step
            raise RecordError(
                f"no record of L-BFGS: history_s has {len(s)} vectors, history_y {len(y)}"
            )
        g_iter = _count(record, "g_iter")
        vectors = {
            name: _vector(record, name, size) if name in record.tensors else None
            for name in ("d", "prev_flat_grad")
        }
        self._s, self._y = s, y
        self._d, self._prev_grad = vectors["d"], vectors["prev_flat_grad"]
        self._t, self._prev_loss = _optional(record, "t"), _optional(record, "prev_loss")
        self._g_iter = g_iter

    def save(self, path: Any) -> str:
        """Save the state to a file, atomically; return its path (R59)."""
        return self.into_record().save(path)

    def load(self, path: Any) -> None:
        """Load the state from a file (R59)."""
        self.load_record(OptimizerRecord.load(path))

    def _params(self) -> dict[str, Param]:
        seen: set[int] = set()
        found = {}
        for path, param in self.module.named_params().items():
            if param.kind == "float" and param.require_grad and int(param.id) not in seen:
                seen.add(int(param.id))
                found[path] = param
        return found


def _flatten(arrays: list[Array]) -> Array:
    return np.concatenate([np.asarray(array).reshape(-1) for array in arrays])


def _assign(params: Mapping[str, Param], values: Array) -> None:
    start = 0
    for param in params.values():
        param.value = values[start : start + param.size].reshape(param.shape)
        start += param.size


def _fitting(grads: Mapping[str, Any], path: str, param: Param) -> Array:
    grad = np.asarray(grads[path])
    if grad.shape != param.shape:
        raise ValueError(
            f"the gradient of {path!r} has shape {list(grad.shape)}, expected {list(param.shape)}"
        )
    return grad.astype(param.value.dtype, copy=False)


def _dot(one: Array, other: Array) -> float:
    return float(np.dot(one.astype(np.float64), other.astype(np.float64)))


def _largest(array: Array) -> float:
    return float(np.max(np.abs(array), initial=0))


def _count(record: OptimizerRecord, name: str) -> int:
    found = record.scalars.get(name)
    try:
        if found is not None:
            return found.as_int(signed=False)
    except ValueError:
        pass
    raise RecordError(
        f"not a record of L-BFGS: {name} is {found or 'missing'}, expected an unsigned integer"
    )


def _optional(record: OptimizerRecord, name: str) -> float | None:
    found = record.scalars.get(name)
    return None if found is None or found.kind == "Bool" else found.as_float()


def _history(record: OptimizerRecord, name: str, size: int) -> list[Array]:
    return [_vector(record, f"{name}.{i}", size) for i in range(_count(record, f"{name}.len"))]


def _vector(record: OptimizerRecord, name: str, size: int) -> Array:
    tensor = record.tensors.get(name)
    if tensor is None:
        raise RecordError(f"not a whole record of L-BFGS: {name} is missing")
    if tensor.shape != (size,) or tensor.dtype.kind != "float":
        raise RecordError(
            f"{name} is {tensor.dtype} {list(tensor.shape)}, expected floats of [{size}]: "
            "the record is of another module"
        )
    return tensor.numpy()

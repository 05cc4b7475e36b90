"""A case: a small model with inputs, under a stable ID."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from opsuite.exits import OpsuiteError
from opsuite.seeds import case_seed, seed_everything

if TYPE_CHECKING:
    import torch

    from opsuite.flows.flow import Flow


class CaseSkipped(Exception):
    """Raised by a case's `build` when the case cannot be built; the message is the reason."""


@dataclass(frozen=True)
class Built:
    """A case made concrete.

    Attributes:
        module: the model, in evaluation mode.
        inputs: positional arguments of `forward`; they calibrate, export and, unless `fresh_inputs`, test.
        dynamic_shapes: what `torch.export.export` takes under that name.
        fresh_inputs: whether the lowered program is tested on a new standard normal draw of the same
            shapes and dtypes, and not on `inputs`.
    """

    module: torch.nn.Module
    inputs: tuple[Any, ...]
    dynamic_shapes: Any = None
    fresh_inputs: bool = False


@dataclass(frozen=True)
class Case:
    """What is tested.

    Attributes:
        id: stable and unique: the same in every run, shard, bundle and report.
        build: returns `(module, inputs)` or a `Built`; may raise `CaseSkipped`. The generators are seeded
            from the ID and the run's seed before it is called.
        dynamic_shapes: what `torch.export.export` takes under that name.
        tags: words to select by.
        flow_dependent: `build` takes the flow, since the case's model is another one when it is quantized.
    """

    id: str
    build: Callable[..., Any]
    dynamic_shapes: Any = None
    tags: frozenset[str] = field(default_factory=frozenset)
    flow_dependent: bool = False

    @property
    def name(self) -> str:
        return self.id

    def instantiate(self, run_seed: int, flow: Flow) -> Built:
        """Seeds from the case's ID, then builds. Raises CaseSkipped, or whatever `build` raises."""
        import torch

        seed_everything(case_seed(self.id, run_seed))
        made = self.build(flow) if self.flow_dependent else self.build()
        if not isinstance(made, Built):
            module, inputs = made
            made = Built(module, inputs, self.dynamic_shapes)
        if not isinstance(made.module, torch.nn.Module):
            raise TypeError(f"build() of case {self.id!r} returned a {type(made.module).__name__}, not an nn.Module")
        if not isinstance(made.inputs, tuple):
            raise TypeError(
                f"build() of case {self.id!r} returned inputs as a {type(made.inputs).__name__}, not a tuple"
            )
        made.module.eval()
        return made


def function_module(function: Callable[..., Any]) -> torch.nn.Module:
    """A module whose `forward` is `function`: for cases of one op."""
    import torch

    class Function(torch.nn.Module):
        def forward(self, *inputs: Any) -> Any:
            return function(*inputs)

    return Function()


def check_case_id(case_id: str) -> str:
    """Returns the ID. Raises OpsuiteError where it could not name a line or a file."""
    if not case_id or not case_id.isprintable() or case_id != case_id.strip():
        raise OpsuiteError(f"{case_id!r} is not a case ID: it must be printable, without spaces around it")
    return case_id

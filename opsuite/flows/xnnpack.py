"""The XNNPACK flows: float, and three ways to int8."""

from __future__ import annotations

import functools
from typing import Any

from opsuite.flows.flow import FLOWS, Flow, Requirement
from opsuite.pipeline.accuracy import SINGLE_PRECISION, STATIC_INT8


def _partitioners() -> list[Any]:
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner

    return [XnnpackPartitioner()]


def _compile_config() -> Any:
    from executorch.backends.xnnpack.utils.configs import get_xnnpack_edge_compile_config

    return get_xnnpack_edge_compile_config()


def _quantizer(per_channel: bool, dynamic: bool) -> Any:
    from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import (
        XNNPACKQuantizer,
        get_symmetric_quantization_config,
    )

    config = get_symmetric_quantization_config(is_per_channel=per_channel, is_dynamic=dynamic)
    return XNNPACKQuantizer().set_global(config)


# name, summary, (weights per channel, dynamic activations) or None for float
_ROWS: tuple[tuple[str, str, tuple[bool, bool] | None], ...] = (
    ("xnnpack", "XNNPACK, float", None),
    ("xnnpack_dynamic_int8_per_channel", "XNNPACK, dynamic int8, weights per channel", (True, True)),
    ("xnnpack_static_int8_per_channel", "XNNPACK, static int8, weights per channel", (True, False)),
    ("xnnpack_static_int8_per_tensor", "XNNPACK, static int8, weights per tensor", (False, False)),
)

for _name, _summary, _scheme in _ROWS:
    FLOWS.register(
        Flow(
            _name,
            backend="xnnpack",
            summary=_summary,
            quantizer=functools.partial(_quantizer, *_scheme) if _scheme else None,
            partitioners=_partitioners,
            compile_config=_compile_config,
            delegate="XnnpackBackend",
            requires=(Requirement("executorch.backends.xnnpack", "pip install 'executorch>=1.5.1'"),),
            thresholds=STATIC_INT8 if _scheme else SINGLE_PRECISION,
        )
    )

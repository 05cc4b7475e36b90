"""Any other flow that the installed executorch registers, and why the rest of them are missing.

The peer drops a flow whose import fails with an INFO line; here it stays listed, with that line as its reason.
"""

from __future__ import annotations

import functools
import logging
import re
from collections.abc import Callable
from typing import Any

from opsuite.exits import in_short
from opsuite.flows.flow import FLOWS, Flow
from opsuite.output import quiet

PEER_FLOWS: dict[str, tuple[tuple[str, ...], str]] = {
    "Vulkan": (("vulkan", "vulkan_static_int8_per_channel"), "install executorch 1.5.1"),
    "WebGPU": (("webgpu",), "install executorch 1.5.1"),
    "OpenVINO": (("openvino", "openvino_int8"), "pip install openvino nncf"),
    "QNN": (
        ("qnn", "qnn_16a16w", "qnn_16a8w", "qnn_16a4w", "qnn_16a4w_block", "qnn_8a8w"),
        "install the Qualcomm AI Engine Direct SDK and set QNN_SDK_ROOT to it",
    ),
    "ARM": (
        ("arm_tosa_fp", "arm_tosa_int", "arm_ethos_u55", "arm_ethos_u85", "arm_vgf_fp", "arm_vgf_int"),
        "run executorch's examples/arm/setup.sh",
    ),
    "Cortex-M": (("cortex_m",), "put the Corstone-300 FVP on PATH (executorch's examples/arm/setup.sh)"),
    "NXP": (("nxp_neutron",), "run executorch's examples/nxp/setup.sh"),
    "MLX": (("mlx",), "build executorch with MLX on an Apple silicon Mac (install_executorch.py)"),
}
"""The peer's flows by the name under which it logs that it left them out, and what installs what they need."""

DELEGATES = {"vulkan": "VulkanBackend", "webgpu": "VulkanBackend", "openvino": "OpenvinoBackend"}
"""Names in executorch's backend registry, by the peer's backend name."""

_SKIPPED = re.compile(r"Skipping (?P<backend>.+) flow registration: (?P<reason>.+)", re.DOTALL)


@functools.lru_cache(maxsize=1)
def peer_flows() -> tuple[dict[str, Any], dict[str, str]]:
    """The installed executorch's flows by name, and the reasons for which it left others out, by backend."""
    with quiet():
        from executorch.backends.test.suite import flow as peer

    reasons: dict[str, str] = {}

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            found = _SKIPPED.match(record.getMessage())
            if found:
                reasons[found["backend"]] = found["reason"].strip().splitlines()[0]

    keep = Keep()
    propagate = peer.logger.propagate
    peer.logger.addHandler(keep)
    peer.logger.propagate = False
    try:
        with quiet():
            return dict(peer.all_flows()), reasons
    finally:
        peer.logger.removeHandler(keep)
        peer.logger.propagate = propagate


def _stage(test_flow: Any, kind: str) -> Any:
    """A stage object of the peer's flow. Raises TypeError where it does more than hold ingredients."""
    import torch
    from executorch.backends.test.harness import stages

    tester = test_flow.tester_factory(torch.nn.Identity(), (torch.zeros(1),))
    if kind == "QUANTIZE" and test_flow.quantize_stage_factory:
        stage = test_flow.quantize_stage_factory()
    else:
        stage = tester._get_default_stage(stages.StageType[kind])
    base = stages.Quantize if kind == "QUANTIZE" else stages.ToEdgeTransformAndLower
    if not isinstance(stage, base) or type(stage).run is not base.run:
        raise TypeError(f"its {kind.lower()} stage has a run() of its own, which opsuite's pipeline does not call")
    return stage


def _probe(name: str, backend: str) -> str | None:
    flows, reasons = peer_flows()
    if name not in flows:
        reason = reasons.get(backend, "the installed executorch does not register it")
        return f"{reason.rstrip('.')}: {PEER_FLOWS[backend][1]}"
    try:
        for kind in ("QUANTIZE", "TO_EDGE_TRANSFORM_AND_LOWER")[0 if flows[name].quantize else 1 :]:
            _stage(flows[name], kind)
    except Exception as error:
        return in_short(error)
    return None


def _ingredient(name: str, kind: str, attribute: str) -> Any:
    return getattr(_stage(peer_flows()[0][name], kind), attribute)


def adapt(name: str, backend: str, quantized: bool) -> Flow:
    """The peer's flow of that name as one of ours; whether it is available is found out when it is asked for."""
    lower: Callable[[str], Any] = functools.partial(_ingredient, name, "TO_EDGE_TRANSFORM_AND_LOWER")
    short = name.split("_", maxsplit=1)[0]
    return Flow(
        name,
        backend=short,
        summary=f"{backend}, as the installed executorch defines it",
        quantizer=functools.partial(_ingredient, name, "QUANTIZE", "quantizer") if quantized else None,
        partitioners=functools.partial(lower, "partitioners"),
        compile_config=functools.partial(lower, "edge_compile_conf"),
        delegate=DELEGATES.get(short, backend),
        probe=functools.partial(_probe, name, backend),
    )


def register() -> None:
    """Registers the flows of the table. A function, since they are to be listed behind our own."""
    for backend, (names, _) in PEER_FLOWS.items():
        for name in names:
            quantized = re.search(r"int8|_int$|\d+a\d+w|ethos|neutron|cortex", name) is not None
            FLOWS.register(adapt(name, backend, quantized))

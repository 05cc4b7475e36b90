"""The portable flow: nothing is delegated, every op runs on executorch's portable kernels."""

from opsuite.flows.flow import FLOWS, Flow

PORTABLE = FLOWS.register(Flow("portable", backend="portable", summary="portable kernels, float"))

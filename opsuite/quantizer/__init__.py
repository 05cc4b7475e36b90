"""Core ML static-int8 quantizer for PT2E: ExecuTorch's annotations in milliseconds, with reasons."""

from opsuite.quantizer.fixes import Fix
from opsuite.quantizer.quantizer import CoreMLQuantizer

__all__ = ["CoreMLQuantizer", "Fix"]

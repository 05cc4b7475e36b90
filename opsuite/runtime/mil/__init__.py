"""An interpreter of Core ML ML Programs, on any system: `load(package).predict({...})`."""

from opsuite.runtime.mil.errors import InputError, OpError, ProgramError, UnknownOpError
from opsuite.runtime.mil.interpreter import Overflow, Report
from opsuite.runtime.mil.model import Fp16OverflowWarning, Model, load

__all__ = [
    "Fp16OverflowWarning",
    "InputError",
    "Model",
    "OpError",
    "Overflow",
    "ProgramError",
    "Report",
    "UnknownOpError",
    "load",
]

"""Cases that end well, each with figures that are not zero, and slowly enough to be interrupted between two."""

import time

import torch

from opsuite.cases import Case, function_module


def build(function):
    def build():
        time.sleep(0.5)
        return function_module(function), (torch.randn(4, 8),)

    return build


FUNCTIONS = [torch.exp, torch.sigmoid, torch.tanh, torch.rsqrt, torch.log, torch.sin, torch.cos, torch.erf]
CASES = [Case(f"steady/{function.__name__}", build(function)) for function in FUNCTIONS]

"""opsuite: operator suites, quantizer and runtimes for ExecuTorch and Core ML."""

__version__ = "0.1.0"

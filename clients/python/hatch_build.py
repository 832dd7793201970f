"""Generates the contract's messages before a wheel or an sdist is built."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

sys.path.insert(0, str(Path(__file__).resolve().parent))

import generate


class Hook(BuildHookInterface):  # type: ignore[type-arg]
    """Runs `generate.py` where the contract is at hand; an sdist brings what it generated."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002
        """See hatchling."""
        if generate.is_here():
            generate.generate()

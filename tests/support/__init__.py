# SPDX-License-Identifier: MIT
"""Helpers of the Python tests: processes, namespaces, our programs and their peers."""
import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("SOJOURN_BUILD", ROOT / "build"))

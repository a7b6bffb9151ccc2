# SPDX-License-Identifier: MIT
"""The observer: what it counts and times."""

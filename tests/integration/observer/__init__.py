# SPDX-License-Identifier: MIT
"""The observer: its counts and times."""

# SPDX-License-Identifier: MIT
"""The driver: its requests, counts and messages."""

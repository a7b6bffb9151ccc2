# SPDX-License-Identifier: MIT
"""The driver: what it sends, counts and says."""

# SPDX-License-Identifier: MIT
"""sojourn doctor: what runs out."""

# SPDX-License-Identifier: MIT
"""sojourn doctor: exhausted resources."""

# SPDX-License-Identifier: MIT
"""Reports made from run documents."""

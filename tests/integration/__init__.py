# SPDX-License-Identifier: MIT
"""Our programs against real servers, in the kernel."""

# SPDX-License-Identifier: Apache-2.0
"""Sizes and numbers in few characters."""

PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
BINARY = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


def size_name(size, _=None):
    for unit, name in BINARY:
        if size >= unit:
            return f"{size / unit:g} {name}"
    return f"{size:g} B"


def number_name(value):
    """Three digits, and a prefix where there are more: 1.5, 384, 16k."""
    for unit, prefix in PREFIXES:
        if abs(value) >= 10 * unit:
            return f"{value / unit:.3g}{prefix}"
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"

# SPDX-License-Identifier: Apache-2.0
"""What rows of a table are called, and in which order they come."""

import json
import pathlib

from .data import expected, text_of

# Colours and words, which the pages of --report have from the same file.
LOOK = json.loads(pathlib.Path(__file__).with_name("look.json").read_text(encoding="utf-8"))


def words(column):
    """"busbw_gb_per_s" as "bus bandwidth (GB/s)"; keys of files, which have dots, stay."""
    if column in LOOK["names"] or "." in column:
        return LOOK["names"].get(column, column)
    parts = column.split("_")
    for first in range(1, len(parts)):
        unit = LOOK["units"].get("_".join(parts[first:]))
        if unit:
            return f"{words('_'.join(parts[:first]))} ({unit})"
    return " ".join(LOOK["words"].get(part, part) for part in parts)


def in_order(values):
    """Numbers by size, words as they come."""
    values = list(dict.fromkeys(values))
    try:
        return sorted(values, key=float)
    except ValueError:
        return values


def named(pairs):
    """--name KEY=TEXT, where KEY is a column or COLUMN=VALUE."""
    names = {}
    for each in pairs:
        key, _, text = each.rpartition("=")
        if not key:
            raise expected("--name", "COLUMN=TEXT or COLUMN=VALUE=TEXT", f'"{each}"')
        names[key] = text
    return names


def label_of(row, columns, names):
    """The values of these columns; a number alone says nothing, so its column is named."""
    parts = []
    for column in columns:
        text = text_of(row[column])
        name = names.get(f"{column}={text}")
        if name is None:
            is_number = text.replace(".", "", 1).isdigit()
            name = f"{names.get(column, column.split('.')[-1])} {text}" if is_number else text
        parts.append(name)
    return ", ".join(part for part in parts if part)


def conditions_of(pairs):
    """--where COLUMN=VALUE[,VALUE]"""
    conditions = {}
    for each in pairs:
        column, mark, values = each.rpartition("=")
        if not mark or not column:
            raise expected("--where", "COLUMN=VALUE", f'"{each}"')
        conditions.setdefault(column, []).extend(values.split(","))
    return conditions

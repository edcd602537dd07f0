# SPDX-License-Identifier: Apache-2.0
"""Reads what the commands write: a JSON object, or CSV with "# key: value" lines before its header.

Whatever is wrong with it is BadInput with one line: where, what was expected, what was found."""

import csv
import json


class BadInput(Exception):
    pass


def expected(place, what, found):
    return BadInput(f"{place}: expected {what}, found {found}")


def quoted(names):
    return ", ".join(f'"{name}"' for name in names)


class Table:
    """Rows of a CSV file, or the list of a JSON report. Cells are text until someone asks."""

    def __init__(self, columns, rows, places, names):
        self.columns = columns
        self.rows = rows
        self.places = places  # Of each row, for messages.
        self.names = names  # Of the lines before the header.

    def require(self, *columns):
        for column in columns:
            if column not in self.columns:
                raise expected("header", f'a column "{column}"', quoted(self.columns))

    def number(self, index, column):
        """None where the cell is empty: a point that failed."""
        text = self.rows[index][column]
        if text is None or text == "":
            return None
        try:
            return float(text)
        except (TypeError, ValueError):
            raise expected(self.places[index], f'a number as "{column}"', f'"{text}"') from None

    def is_numeric(self, column):
        try:
            for row in self.rows:
                float(row[column] or 0)
        except (TypeError, ValueError):
            return False
        return True

    def where(self, conditions):
        """Rows in which each column has one of the values that are given for it."""
        self.require(*conditions)
        keep = [
            index
            for index, row in enumerate(self.rows)
            if all(text_of(row[name]) in values for name, values in conditions.items())
        ]
        if not keep and conditions:
            raise BadInput(f"no row is left by {quoted(conditions)}")
        rows = [self.rows[index] for index in keep]
        return Table(self.columns, rows, [self.places[index] for index in keep], self.names)


def text_of(cell):
    """As CSV has it: JSON's true and 4.0 are the same as those of a CSV file."""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return "" if cell is None else str(cell)


def read_csv(text):
    lines = text.splitlines()
    names = {}
    first = 0
    while first < len(lines) and lines[first].startswith("#"):
        key, _, value = lines[first][1:].partition(":")
        names[key.strip()] = value.strip()
        first += 1
    reader = csv.reader(lines[first:])
    header = next(reader, [])
    if len(header) < 2:
        raise expected(f"line {first + 1}", "a JSON object or a CSV header", f"{len(header)} column")
    if len(set(header)) != len(header):
        raise expected(f"line {first + 1}", "every column once", quoted(header))
    rows, places = [], []
    for cells in reader:
        place = f"line {first + reader.line_num}"
        if len(cells) != len(header):
            raise expected(place, f"{len(header)} cells", str(len(cells)))
        rows.append(dict(zip(header, cells)))
        places.append(place)
    if not rows:
        raise expected("input", "a row below the header", "none")
    return Table(header, rows, places, names)


def table_of(report, key):
    """The list of objects `key` of a JSON report."""
    rows = report.get(key)
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
        raise expected("input", f'a list "{key}" of results', quoted(report))
    columns = list(dict.fromkeys(column for row in rows for column in row))
    rows = [{column: row.get(column) for column in columns} for row in rows]
    places = [f"{key}[{index}]" for index in range(len(rows))]
    return Table(columns, rows, places, {})


def read_input(text):
    """A dict of a JSON object, or a Table."""
    if not text.strip():
        raise expected("input", "a JSON object or a CSV table", "nothing")
    if not text.lstrip().startswith(("{", "[")):
        return read_csv(text)
    try:
        report = json.loads(text)
    except json.JSONDecodeError as error:
        raise expected(f"line {error.lineno}", "JSON", error.msg) from None
    if not isinstance(report, dict):
        raise expected("input", "a JSON object", "a list")
    return report

# SPDX-License-Identifier: Apache-2.0
"""tools/pivot: a table to read from one of many columns. Needs nothing but Python."""

from .data import Table, expected, read_input, table_of, text_of
from .labels import conditions_of, in_order, label_of, named
from .parser import OneLineParser, read_text, run
from .units import size_name


def parser():
    result = OneLineParser(
        prog="tools/pivot", allow_abbrev=False,
        description="Prints some columns of a CSV table, or one of them over two others.")
    add = result.add_argument
    add("input", metavar="INPUT", nargs="?", help="CSV or JSON; standard input without it")
    add("--rows", required=True, help="columns that name a row, separated by commas")
    add("--columns", help="the column whose values are the columns; else each of --values is one")
    add("--values", required=True, help="columns with the numbers, separated by commas")
    add("--where", action="append", default=[], metavar="COLUMN=VALUE[,VALUE]",
        help="only such rows; may be given again")
    add("--name", action="append", default=[], metavar="COLUMN[=VALUE]=TEXT",
        help="what a column or a value is called; may be given again")
    add("--scale", type=float, default=1.0, help="factor of all numbers")
    add("--digits", type=int, default=4, help="significant digits")
    add("--relative", choices=("first", "least"), help="over the first or the least of the row")
    return result


def text_of_number(value, digits):
    if value is None:
        return "-"
    if value == 0 or 10 ** (digits - 1) <= abs(value) < 1e15:
        return f"{value:.0f}"
    rounded = f"{value:#.{digits}g}"
    return rounded.rstrip(".") if "e" not in rounded else f"{value:.{digits}g}"


def cell_name(column, text, names):
    name = names.get(f"{column}={text}")
    if name is None:
        name = size_name(float(text)) if column == "size_bytes" else text
    return name


def relative(values, kind):
    known = [value for value in values if value is not None]
    if kind is None or not known:
        return values
    base = values[0] if kind == "first" else min(known)
    return [None if value is None or not base else value / base for value in values]


def pivot(table, options, names):
    """Header and lines, all of them text."""
    rows = [name for name in options.rows.split(",") if name]
    values = [name for name in options.values.split(",") if name]
    table.require(*rows, *values, *([options.columns] if options.columns else []))
    if options.columns and len(values) > 1:
        raise expected("--values", "one column beside --columns", str(len(values)))
    heads = in_order(text_of(row[options.columns]) for row in table.rows) if options.columns else (
        values)
    cells = {}
    for index, row in enumerate(table.rows):
        key = tuple(text_of(row[name]) for name in rows)
        line = cells.setdefault(key, {})
        for value in values:
            head = text_of(row[options.columns]) if options.columns else value
            if head in line:
                raise expected(table.places[index], "one row of the input for each cell (--where)",
                               "two")
            number = table.number(index, value)
            line[head] = None if number is None else number * options.scale
    header = [names.get(name, name) for name in rows]
    header += [cell_name(options.columns, head, names) if options.columns else names.get(head, head)
               for head in heads]
    lines = []
    for key, line in cells.items():
        numbers = relative([line.get(head) for head in heads], options.relative)
        lines.append([cell_name(name, text, names) for name, text in zip(rows, key)]
                     + [text_of_number(number, options.digits) for number in numbers])
    return header, lines, len(rows)


def print_aligned(header, lines, left):
    widths = [max(len(line[column]) for line in [header, *lines]) for column in range(len(header))]
    for line in [header, *lines]:
        cells = [text.ljust(width) if column < left else text.rjust(width)
                 for column, (text, width) in enumerate(zip(line, widths))]
        print("  ".join(cells).rstrip())


def run_pivot(arguments):
    options = parser().parse_args(arguments)
    if not 1 <= options.digits <= 15:
        raise expected("--digits", "1 to 15", str(options.digits))
    report = read_input(read_text(options.input))
    table = report if isinstance(report, Table) else table_of(report, "rows")
    print_aligned(*pivot(table.where(conditions_of(options.where)), options, named(options.name)))
    return 0


def main(arguments):
    return run("tools/pivot", lambda: run_pivot(arguments))

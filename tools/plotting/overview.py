# SPDX-License-Identifier: Apache-2.0
"""Bars of what any command writes, as JSON or CSV: which columns are names and which are values
follows from a column that only that command has, else from what is text and what is a number."""

from . import style
from .data import Table, expected, quoted, table_of, text_of
from .labels import words

MOST_BARS = 40
MOST_NUMBERS = 60  # Bars with a number each.
MOST_LETTERS = 50  # Of a name.

# What tells the table, the names of its bars, their values.
KNOWN = (
    ("difference_s", ("label", "part"), ("a_s", "b_s")),
    ("elasticity", ("label", "title"), ("elasticity",)),
    ("zero_stage", ("gpus", "tp", "cp", "pp", "ep", "micro_batch"), ("step_time_s",)),
    ("together_s", ("job",), ("alone_s", "together_s")),
    ("fct_p50_us", ("group",), ("fct_p50_us", "fct_p99_us")),
    ("alone_us", ("group", "operation"), ("alone_us", "time_us")),
    ("rate_gb_per_s", ("from", "to"), ("rate_gb_per_s",)),
)


def parts_table(times):
    """Parts of a step, those that take time."""
    rows = [{"part": name, "time_s": time} for name, time in times.items() if time]
    return Table(["part", "time_s"], rows, [f"part {row['part']}" for row in rows], {})


def parts_of_row(table):
    """The same of the one row that `step` writes as CSV."""
    names = [name for name in table.columns
             if name.endswith("_s") and not name.startswith("step_time")
             and not name.endswith("_per_s")]
    return parts_table({name.removesuffix("_s"): table.number(0, name) for name in names})


def nested_table(report):
    """Lists that stand in the `times` of explain and compare."""
    rows = []
    for time in report["times"]:
        for row in time.get("resources", []):
            rows.append({"label": time["label"], **row})
        if "a_ps" in time:
            for part in [*time["parts"], {**time, "name": "all"}]:
                rows.append({"label": time["label"], "part": part["name"],
                             "a_s": part["a_ps"] / 1e12, "b_s": part["b_ps"] / 1e12,
                             "difference_s": part["difference_ps"] / 1e12})
    return table_of({"times": rows}, "times")


def table_of_any(report):
    """The table that a report is about: its CSV, or its first list of results in JSON."""
    if isinstance(report, Table):
        is_step = len(report.rows) == 1 and "linear_s" in report.columns
        return parts_of_row(report) if is_step else report
    if "breakdown_s" in report:
        return parts_table(report["breakdown_s"])
    if "times" in report:
        return nested_table(report)
    lists = [key for key, value in report.items()
             if isinstance(value, list) and value and isinstance(value[0], dict)]
    first = next((key for key in ("rows", "plans", "jobs", "groups") if key in lists),
                 next(iter(lists), None))
    if first is None:
        raise expected("input", "a list of results", quoted(report))
    return table_of(report, first)


def columns_of(table):
    """(names, values)"""
    for key, names, values in KNOWN:
        if key in table.columns:
            return [name for name in names if name in table.columns], list(values)
    numeric = [name for name in table.columns if table.is_numeric(name)
               and any(row[name] not in (None, "") and not isinstance(row[name], bool)
                       for row in table.rows)]
    names = [name for name in table.columns if not table.is_numeric(name)][:2]
    values = [name for name in numeric if len({text_of(row[name]) for row in table.rows}) > 1]
    if not numeric:
        raise expected("input", "a column of numbers", quoted(table.columns))
    return names, (values or numeric)[:1]


def title_of(report):
    if isinstance(report, Table):
        return ""
    what = next((report[key] for key in ("model", "workload", "operation", "traffic", "compared")
                 if isinstance(report.get(key), str)), "")
    parts = [what, report["cluster"] if isinstance(report.get("cluster"), str) else ""]
    return ", ".join(part for part in parts if part)


def name_of(row, names):
    """Numbers say what they are of."""
    parts = []
    for name in names:
        text = text_of(row[name])
        parts.append(f"{words(name)} {text}" if text.isdigit() else text)
    text = ", ".join(part for part in parts if part)
    return text if len(text) <= MOST_LETTERS else text[:MOST_LETTERS - 1] + "\u2026"


def draw_overview(report, figure, options):
    """A group of bars for each row, one bar in it for each value."""
    table = table_of_any(report).where(options.where)
    names, values = columns_of(table)
    if options.y:
        table.require(options.y)
        values = [options.y]
    shown = range(min(MOST_BARS, len(table.rows)))
    axes = figure.subplots()
    height = 0.8 / len(values)
    for index, value in enumerate(values):
        lengths = [(table.number(row, value) or 0) * options.scale for row in shown]
        places = [row + (index - (len(values) - 1) / 2) * height for row in shown]
        drawn = axes.barh(places, lengths, height, color=style.colour(index), label=words(value),
                          edgecolor="white", hatch=["", "//"][index % 2])
        if len(shown) * len(values) <= MOST_NUMBERS:
            axes.bar_label(drawn, [f"{length:.4g}" for length in lengths], fontsize="x-small",
                           padding=2)
    axes.set_yticks(shown, [name_of(table.rows[row], names) for row in shown], fontsize="x-small")
    axes.invert_yaxis()
    label = words(values[0])
    if len(values) > 1:  # The legend has the names; several values are times.
        label = "time " + label.partition(" (")[1].strip() + label.partition(" (")[2]
    axes.set_xlabel(options.x_label or label)
    axes.margins(x=0.12)
    style.finish(axes, options.title or title_of(report), legend=len(values) > 1)
    if len(table.rows) > len(shown):
        style.remark(axes, f"the first {len(shown)} of {len(table.rows)} rows")

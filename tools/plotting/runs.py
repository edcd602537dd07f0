# SPDX-License-Identifier: Apache-2.0
"""What happens in a run: the time line of a pipeline, memory, links, rates and queues."""

import re

from . import style
from .data import Table, expected, quoted, table_of
from .labels import words

# Of memory, which has more classes than there are colours for lines.
MORE_COLOURS = ["#BBBBBB", "#882255", "#117733"]
MOST_LINES = 40
MOST_QUEUES = 6


def tracks_of(report):
    """{(process, thread): (process name, thread name)} of a Chrome trace, in its order."""
    events = report.get("traceEvents")
    if not isinstance(events, list):
        raise expected("input", 'the time line of --trace ("traceEvents")', quoted(report))
    processes, tracks = {}, {}
    for event in events:
        if event.get("ph") == "M" and event["name"] == "process_name":
            processes[event["pid"]] = event["args"]["name"]
        elif event.get("ph") == "M" and event["name"] == "thread_name":
            tracks[event["pid"], event["tid"]] = (processes[event["pid"]], event["args"]["name"])
    return tracks


def kind_of_span(name):
    """"forward of micro-batch 3" is forward, "all_reduce 7" all_reduce."""
    return re.sub(r"[\s\d,.#:]+$", "", name.split(" of ")[0]) or name


def draw_timeline(report, figure, options):
    """Passes of the pipeline ranks if the trace has them, else every track; --tracks chooses."""
    if isinstance(report, Table):
        raise expected("input", "the JSON of --trace", "CSV")
    tracks = tracks_of(report)
    wanted = options.tracks
    if wanted is None and any("passes" in name for _, name in tracks.values()):
        wanted = "passes"
    lanes = [key for key, names in tracks.items() if wanted is None or wanted in " ".join(names)]
    if not lanes:
        raise expected("--tracks", "a part of " + quoted(sorted({n for _, n in tracks.values()})),
                       f'"{wanted}"')
    if len(lanes) > MOST_LINES:
        lanes = lanes[:MOST_LINES]
    axes = figure.subplots()
    height = {key: index for index, key in enumerate(lanes)}
    spans = {}
    for event in report["traceEvents"]:
        lane = height.get((event.get("pid"), event.get("tid")))
        if event.get("ph") == "X" and lane is not None and event["dur"] > 0:
            spans.setdefault(kind_of_span(event["name"]), []).append((lane, event))
    ends = [event["ts"] + event["dur"] for each in spans.values() for _, event in each]
    if not ends:
        raise expected("input", "spans on these tracks", "none")
    longest = max(ends)
    for index, (kind, each) in enumerate(spans.items()):
        by_lane = {}
        for lane, event in each:
            by_lane.setdefault(lane, []).append((event["ts"] / 1000, event["dur"] / 1000))
        for lane, ranges in by_lane.items():
            axes.broken_barh(ranges, (lane - 0.4, 0.8), facecolors=style.colour(index),
                             edgecolor="white", linewidth=0.1,
                             label=kind if lane == each[0][0] else None)
        for lane, event in each:
            number = re.search(r"micro-batch (\d+)", event["name"])
            if number and event["dur"] > 0.012 * longest:
                axes.text((event["ts"] + event["dur"] / 2) / 1000, lane, number[1], ha="center",
                          va="center", fontsize="xx-small", color="white")
    axes.set_yticks(range(len(lanes)), [", ".join(tracks[key]) for key in lanes], fontsize="small")
    axes.invert_yaxis()
    axes.set_xlim(0, longest / 1000)
    axes.set_xlabel("time (ms)")
    axes.set_title(options.title, fontsize="medium")
    axes.legend(fontsize="small", loc="upper left", bbox_to_anchor=(1.01, 1))
    if len(height) < len([k for k, n in tracks.items() if wanted is None or wanted in " ".join(n)]):
        style.remark(axes, f"the first {MOST_LINES} tracks")


def draw_memory(report, figure, options):
    """The table of `step --memory`: classes stacked, over the passes of a rank."""
    if not isinstance(report, Table):
        raise expected("input", "the CSV of step --memory", "JSON")
    report.require("rank", "position", "moment")
    wanted = options.where or {"rank": [report.rows[0]["rank"]]}
    table = report.where(wanted)
    classes = [name for name in table.columns if name.endswith("_gib")]
    indices = range(len(table.rows))
    xs = [table.number(index, "position") for index in indices]
    axes = figure.subplots()
    stack = {name: [table.number(index, name) for index in indices] for name in classes}
    stack = {name: values for name, values in stack.items() if max(values) > 0}
    colours = [*style.COLOURS, *MORE_COLOURS][:len(stack)]
    labels = [words(name.removesuffix("_gib")) for name in stack]
    axes.stackplot(xs, *stack.values(), labels=labels, colors=colours, step="mid", linewidth=0.4,
                   edgecolor="white")
    axes.set_xlim(xs[0], xs[-1])
    axes.set_xlabel("passes of the rank, in their order")
    axes.set_ylabel("memory of a GPU (GiB)")
    axes.set_title(options.title or f"rank {table.rows[0]['rank']} of the pipeline",
                   fontsize="medium")
    handles, names = axes.get_legend_handles_labels()
    axes.legend(handles[::-1], names[::-1], fontsize="small", loc="upper left",
                bbox_to_anchor=(1.01, 1))


def draw_links(report, figure, options):
    """Fullest links of `traffic --format json`, or ports of `--counters`: what they sent, and how
    long they were stopped."""
    axes = figure.subplots()
    if isinstance(report, Table):
        table = report.where(options.where)
        table.require("port", "to", "wire_bytes", "paused_us")
        order = sorted(range(len(table.rows)), key=lambda i: -table.number(i, "wire_bytes"))
        order = order[:options.most]
        names = [f"{table.rows[i]['port']} -> {table.rows[i]['to']}" for i in order]
        values = [table.number(i, "wire_bytes") / 1e6 for i in order]
        texts = [f"paused {table.number(i, 'paused_us'):.0f} us"
                 if table.number(i, "paused_us") > 0 else "" for i in order]
        axes.set_xlabel("sent (MB)")
        colours = style.colour(0)
    else:
        table = table_of(report, "links").where(options.where)
        table.require("link", "rate_gbit_per_s", "utilisation")
        order = range(min(options.most, len(table.rows)))
        names = [table.rows[i]["link"] for i in order]
        values = [100 * table.number(i, "utilisation") for i in order]
        colours = [style.SHARE(value / 100) for value in values]
        texts = [f"{table.number(i, 'rate_gbit_per_s'):.0f} Gb/s" for i in order]
        axes.set_xlabel("share of the time in which the link is busy (%)")
        axes.set_xlim(0, 115)
    drawn = axes.barh(range(len(names)), values, color=colours, edgecolor="#57606a", linewidth=0.4)
    axes.bar_label(drawn, texts, fontsize="x-small", padding=2)
    axes.set_yticks(range(len(names)), names, fontsize="x-small")
    axes.invert_yaxis()
    axes.grid(alpha=0.3, axis="x")
    title = f"{report['traffic']}: {report['cluster']}" if "traffic" in report_keys(report) else ""
    axes.set_title(options.title or title, fontsize="medium")


def report_keys(report):
    return report if isinstance(report, dict) else {}


def draw_rates(report, figure, options):
    """The table of --samples: rates of connections above, the fullest queues below."""
    if not isinstance(report, Table):
        raise expected("input", "the CSV of --samples", "JSON")
    table = report.where(options.where)
    table.require("time_us", "kind", "from", "to", "connection", "queue_bytes", "sent_gbit_per_s")
    rates, queues = {}, {}
    for index, row in enumerate(table.rows):
        time = table.number(index, "time_us") / 1000
        if row["kind"] == "rate":
            name = f"{row['from']} -> {row['to']} ({row['connection']})"
            rates.setdefault(name, []).append((time, table.number(index, "sent_gbit_per_s")))
        else:
            name = f"{row['from']} -> {row['to']}"
            queues.setdefault(name, []).append((time, table.number(index, "queue_bytes") / 1000))
    above, below = figure.subplots(2, 1, sharex=True)
    for index, (name, points) in enumerate(rates.items()):
        above.plot(*zip(*points), color=style.colour(index), linewidth=0.9,
                   label=name if len(rates) <= 8 else None)
    fullest = sorted(queues, key=lambda name: -max(size for _, size in queues[name]))
    for index, name in enumerate(fullest[:MOST_QUEUES]):
        below.plot(*zip(*queues[name]), color=style.colour(index), linewidth=0.9, label=name,
                   linestyle=style.DASHES[index % 4])
    above.set_ylabel("sent (Gb/s)")
    above.set_ylim(bottom=0)
    below.set_ylabel("queue (kB)")
    below.set_ylim(bottom=0)
    below.set_xlabel("time (ms)")
    title = options.title or f"{len(rates)} connections, {len(queues)} queues"
    style.finish(above, title)
    style.finish(below)
    if len(fullest) > MOST_QUEUES:
        style.remark(below, f"the {MOST_QUEUES} longest of {len(fullest)} queues")

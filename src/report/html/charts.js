// SPDX-License-Identifier: Apache-2.0
// Charts of lines with marks: hover and arrow keys say what a mark is. Lines differ in colour,
// dashes and marks, so that no one of these is needed to tell them apart.

// A chart has the width of its host, and is drawn again in another one.
function chartBox(host, label, height) {
  "use strict";
  host.selectAll("*").remove();
  var width = Math.max(280, host.node().clientWidth), isNarrow = width < 600;
  height = isNarrow ? Math.min(height, 300) : height;
  return { width: width, height: height, left: isNarrow ? 58 : 84, bottom: 46, top: 14,
    right: 16, isNarrow: isNarrow,
    svg: host.append("svg").attr("width", width).attr("height", height).attr("tabindex", 0)
      .attr("role", "img").attr("aria-label", label) };
}

// Names of the axes.
function axisNames(box, xLabel, yLabel) {
  "use strict";
  box.svg.append("text").attr("x", (box.left + box.width - box.right) / 2)
    .attr("y", box.height - 8).attr("text-anchor", "middle").text(xLabel);
  box.svg.append("text").attr("text-anchor", "middle").text(yLabel)
    .attr("transform", "translate(14," + (box.height - box.bottom) / 2 + ") rotate(-90)");
}

// Drawn entries of a legend: `draw` gets a small picture, of 30 by 14, and the item.
function drawnLegend(host, items, draw) {
  "use strict";
  var entries = host.append("div").attr("class", "legend").selectAll("span.entry").data(items)
    .enter().append("span").attr("class", "entry");
  entries.append("svg").attr("width", 30).attr("height", 14).attr("aria-hidden", "true")
    .each(function (item, index) { draw(d3.select(this), item, index); });
  entries.append("span").text(function (item) { return item.name; });
}

// On `host`, a d3 selection of an element. Of `spec`: `label` for those who do not
// see it, `xLabel`, `yLabel`, `xLog`, `yLog`, `xText` for numbers on x, `names` of the places on x
// where these are no numbers, `steps` where y stays until the next x, and `series`, each with
// `name`, `points`: [x, y, text], and perhaps `band`: [x, low, high]. `isBare`: many points have no
// marks.
function lineChart(page, host, spec) {
  "use strict";
  var kDashes = [null, "7 3", "2 3", "9 3 2 3"];
  var kMarks = ["circle", "square", "triangle-up", "diamond", "cross", "triangle-down"];
  var points = d3.merge(spec.series.map(function (one) { return one.points; }));
  var bands = d3.merge(spec.series.map(function (one) {
    return d3.merge((one.band || []).map(function (p) { return [[p[0], p[1]], [p[0], p[2]]]; }));
  }));
  var box = chartBox(host, spec.label + "; arrows choose a point", 380), svg = box.svg;
  var width = box.width, height = box.height, left = box.left, right = box.right;
  var bottom = box.bottom, top = box.top;
  var detail = host.append("div").attr("class", "detail").attr("aria-live", "polite");

  // From zero, but for logarithms and for what would be a line along the top.
  function domain(index, isLog) {
    var ends = d3.extent(points.concat(bands), function (p) { return p[index]; });
    if (isLog) { return ends[0] === ends[1] ? [ends[0] / 2, ends[1] * 2] : ends; }
    return index === 1 ? [Math.min(0, ends[0]), Math.max(ends[1], ends[0] === 0 ? 1 : 0)]
      : ends[0] === ends[1] ? [ends[0] - 1, ends[1] + 1] : ends;
  }
  function scale(index, isLog, range) {
    var made = (isLog ? d3.scale.log() : d3.scale.linear()).domain(domain(index, isLog));
    return (index === 1 ? made.nice() : made).range(range);
  }
  var x = spec.names
    ? d3.scale.ordinal().domain(d3.range(spec.names.length)).rangePoints([left, width - right], 0.5)
    : scale(0, spec.xLog, [left, width - right]);
  var y = scale(1, spec.yLog, [height - bottom, top]);

  // Of logarithms no more ticks than can be read.
  function axis(of, isLog, orient, values) {
    var made = d3.svg.axis().scale(of).orient(orient)
      .tickFormat(orient === "bottom" ? spec.xText || page.numberText : page.numberText);
    if (values) { return made.tickValues(values); }
    if (!isLog) { return made.ticks(orient === "left" ? 7 : box.isNarrow ? 4 : 9); }
    var all = of.ticks().filter(function (tick) {
      return of.ticks().length < 12 || /^1/.test(tick.toExponential());
    });
    var every = Math.ceil(all.length / (box.isNarrow && orient === "bottom" ? 5 : 9));
    return made.tickValues(all.filter(function (_, i) { return i % every === 0; }));
  }
  var own = d3.set(points.map(function (p) { return p[0]; })).values().map(Number)
    .sort(d3.ascending);
  var xAxis = spec.names
    ? axis(x, false, "bottom").tickValues(null).tickFormat(function (i) {
      return page.cut(spec.names[i], width / 8 / Math.max(1, spec.names.length));
    })
    : axis(x, spec.xLog, "bottom", own.length <= 9 || spec.xText === page.sizeText
      ? own.filter(function (_, i) {
        return i % Math.ceil(own.length / (box.isNarrow ? 5 : 14)) === 0;
      }) : null);
  svg.append("g").attr("class", "grid").attr("transform", "translate(" + left + ",0)")
    .call(axis(y, spec.yLog, "left").tickSize(-(width - left - right)).tickFormat(""));
  svg.append("g").attr("class", "axis").attr("transform", "translate(0," + (height - bottom) + ")")
    .call(xAxis);
  svg.append("g").attr("class", "axis").attr("transform", "translate(" + left + ",0)")
    .call(axis(y, spec.yLog, "left"));
  axisNames(box, spec.xLabel, spec.yLabel);

  function look(one, index) {
    return { colour: page.colours[index % page.colours.length],
      dash: kDashes[Math.floor(index / page.colours.length) % kDashes.length],
      symbol: d3.svg.symbol().type(kMarks[index % kMarks.length]).size(50) };
  }
  var marks = [];
  spec.series.forEach(function (one, index) {
    var of = look(one, index);
    var path = d3.svg.line().x(function (p) { return x(p[0]); }).y(function (p) { return y(p[1]); })
      .interpolate(spec.steps ? "step-after" : "linear");
    if (one.band) {
      svg.append("path").attr("fill", of.colour).attr("opacity", 0.16).attr("d", d3.svg.area()
        .x(function (p) { return x(p[0]); }).y0(function (p) { return y(p[1]); })
        .y1(function (p) { return y(p[2]); })(one.band));
    }
    svg.append("path").attr("class", "line").attr("fill", "none").attr("stroke", of.colour)
      .attr("stroke-width", 2).attr("stroke-dasharray", of.dash).attr("d", path(one.points));
    var shown = spec.isBare && points.length > 150 ? [] : one.points;
    one.points.forEach(function (p) {
      marks.push({ at: [x(p[0]), y(p[1])], text: one.name + "\n" + p[2] });
    });
    svg.append("g").selectAll("path").data(shown).enter().append("path").attr("class", "mark")
      .attr("d", of.symbol).attr("fill", of.colour)
      .attr("transform", function (p) { return "translate(" + x(p[0]) + "," + y(p[1]) + ")"; });
  });
  drawnLegend(host, spec.series, function (entry, one, index) {
    var of = look(one, index);
    entry.append("line").attr("x2", 30).attr("y1", 7).attr("y2", 7).attr("stroke", of.colour)
      .attr("stroke-width", 2).attr("stroke-dasharray", of.dash);
    entry.append("path").attr("d", of.symbol).attr("transform", "translate(15,7)")
      .attr("fill", of.colour);
  });
  pickable(page, svg, detail, marks);
  return svg;
}

// The mark nearest to the pointer shows its text; arrows, home and end choose one.
function pickable(page, svg, detail, marks) {
  "use strict";
  var ring = svg.append("circle").attr("r", 9).attr("class", "ring").style("display", "none");
  var chosen = -1;
  function show(mark) {
    ring.style("display", mark ? null : "none");
    if (mark) { ring.attr("cx", mark.at[0]).attr("cy", mark.at[1]); }
  }
  svg.on("mousemove", function () {
    var box = svg.node().getBoundingClientRect(), near = 24 * 24, best = null;
    var at = [d3.event.clientX - box.left, d3.event.clientY - box.top];
    marks.forEach(function (mark) {
      var off = Math.pow(mark.at[0] - at[0], 2) + Math.pow(mark.at[1] - at[1], 2);
      if (off < near) { near = off; best = mark; }
    });
    show(best || marks[chosen]);
    page.tip(best ? best.text : "", d3.event);
  }).on("mouseleave", function () {
    page.tip("");
    show(marks[chosen]);
  }).on("keydown", function () {
    var by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1, Home: -marks.length,
      End: marks.length }[d3.event.key];
    if (!by || !marks.length) { return; }
    chosen = Math.max(0, Math.min(marks.length - 1, chosen + by));
    show(marks[chosen]);
    detail.text(marks[chosen].text.replace(/\n/g, "; "));
    d3.event.preventDefault();
  });
}

// Those that the data bring along as they are.
function drawCharts(page) {
  "use strict";
  page.data.charts.forEach(function (chart, index) {
    var id = "chart-" + index;
    var section = d3.select("#charts").append("section").attr("id", id);
    page.list(id, chart.title);
    section.append("h2").text(chart.title);
    if (chart.note) { section.append("p").attr("class", "soft").text(chart.note); }
    chart.series.forEach(function (one) {
      one.points.forEach(function (p) {
        p[2] = chart.xLabel + " " + page.numberText(p[0]) + "\n" + chart.yLabel + " " +
          page.numberText(p[1]);
      });
    });
    var host = section.append("div");
    page.drawn(function () {
      lineChart(page, host, {
        label: chart.title, xLabel: chart.xLabel, yLabel: chart.yLabel, xLog: chart.xLog,
        steps: chart.steps, isBare: true, series: chart.series
      });
    });
  });
}

// SPDX-License-Identifier: Apache-2.0
// Charts of lines with marks: hover and arrow keys say what a mark is. Lines differ in colour,
// dashes and marks, so that no one of these is needed to tell them apart.

// On `host`, a d3 selection of an element that is empty. Of `spec`: `label` for those who do not
// see it, `xLabel`, `yLabel`, `xLog`, `yLog`, `xText` for numbers on x, `names` of the places on x
// where these are no numbers, `steps` where y stays until the next x, and `series`, each with `name`
// and `points`: [x, y, text]. `isBare`: many points have no marks.
function lineChart(page, host, spec) {
  "use strict";
  var width = 1130, height = 380, left = 84, bottom = 46, top = 14, right = 250;
  var kDashes = [null, "7 3", "2 3", "9 3 2 3"];
  var kMarks = ["circle", "square", "triangle-up", "diamond", "cross", "triangle-down"];
  var points = d3.merge(spec.series.map(function (one) { return one.points; }));
  var svg = host.append("svg").attr("width", width).attr("height", height).attr("tabindex", 0)
    .attr("role", "img").attr("aria-label", spec.label + "; arrows choose a point");
  var detail = host.append("div").attr("class", "detail").attr("aria-live", "polite");

  // From zero, but for logarithms and for what would be a line along the top.
  function domain(index, isLog) {
    var ends = d3.extent(points, function (p) { return p[index]; });
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
    if (!isLog) { return made.ticks(orient === "left" ? 7 : 9); }
    var all = of.ticks().filter(function (tick) {
      return of.ticks().length < 12 || /^1/.test(tick.toExponential());
    });
    var every = Math.ceil(all.length / 9);
    return made.tickValues(all.filter(function (_, i) { return i % every === 0; }));
  }
  var own = d3.set(points.map(function (p) { return p[0]; })).values().map(Number)
    .sort(d3.ascending);
  var xAxis = spec.names
    ? axis(x, false, "bottom").tickValues(null).tickFormat(function (i) {
      return page.cut(spec.names[i], 110 / Math.max(1, spec.names.length / 8));
    })
    : axis(x, spec.xLog, "bottom", own.length <= 9 || spec.xText === page.sizeText
      ? own.filter(function (_, i) { return i % Math.ceil(own.length / 14) === 0; }) : null);
  svg.append("g").attr("class", "grid").attr("transform", "translate(" + left + ",0)")
    .call(axis(y, spec.yLog, "left").tickSize(-(width - left - right)).tickFormat(""));
  svg.append("g").attr("class", "axis").attr("transform", "translate(0," + (height - bottom) + ")")
    .call(xAxis);
  svg.append("g").attr("class", "axis").attr("transform", "translate(" + left + ",0)")
    .call(axis(y, spec.yLog, "left"));
  svg.append("text").attr("x", (left + width - right) / 2).attr("y", height - 8)
    .attr("text-anchor", "middle").text(spec.xLabel);
  svg.append("text").attr("transform", "translate(16," + (height - bottom) / 2 + ") rotate(-90)")
    .attr("text-anchor", "middle").text(spec.yLabel);

  var marks = [];
  spec.series.forEach(function (one, index) {
    var colour = page.colours[index % page.colours.length];
    var dash = kDashes[Math.floor(index / page.colours.length) % kDashes.length];
    var symbol = d3.svg.symbol().type(kMarks[index % kMarks.length]).size(50);
    var path = d3.svg.line().x(function (p) { return x(p[0]); }).y(function (p) { return y(p[1]); })
      .interpolate(spec.steps ? "step-after" : "linear");
    svg.append("path").attr("class", "line").attr("fill", "none").attr("stroke", colour)
      .attr("stroke-width", 2).attr("stroke-dasharray", dash).attr("d", path(one.points));
    var shown = spec.isBare && points.length > 150 ? [] : one.points;
    one.points.forEach(function (p) {
      marks.push({ at: [x(p[0]), y(p[1])], text: one.name + "\n" + p[2] });
    });
    svg.append("g").selectAll("path").data(shown).enter().append("path").attr("class", "mark")
      .attr("d", symbol).attr("fill", colour)
      .attr("transform", function (p) { return "translate(" + x(p[0]) + "," + y(p[1]) + ")"; });
    if (index < 17) {
      var row = svg.append("g").attr("transform",
        "translate(" + (width - right + 18) + "," + (top + 14 + 20 * index) + ")");
      row.append("line").attr("x2", 26).attr("y1", -4).attr("y2", -4).attr("stroke", colour)
        .attr("stroke-width", 2).attr("stroke-dasharray", dash);
      row.append("path").attr("d", symbol).attr("transform", "translate(13,-4)")
        .attr("fill", colour);
      row.append("text").attr("x", 34).text(page.cut(one.name, 30)).append("title").text(one.name);
    } else if (index === 17) {
      svg.append("text").attr("x", width - right + 18).attr("y", top + 14 + 20 * 17)
        .text("and " + (spec.series.length - 17) + " others");
    }
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
    lineChart(page, section.append("div").attr("class", "scroll"), {
      label: chart.title, xLabel: chart.xLabel, yLabel: chart.yLabel, xLog: chart.xLog,
      steps: chart.steps, isBare: true, series: chart.series
    });
  });
}

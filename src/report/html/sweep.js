// SPDX-License-Identifier: Apache-2.0
// A sweep as lines, as a map of colours and as a trade of two figures. What stands on which axis is
// chosen in lists, which the keyboard reaches.

function drawSweep(page) {
  "use strict";
  var sweep = page.data.sweep;
  if (!sweep.rows.length || !sweep.figures.length) { return; }
  var keys = sweep.keys, figures = sweep.figures, rows = sweep.rows;
  var at = { figure: sweep.first, x: sweep.x, y: sweep.y, log: false, fixed: {},
    one: sweep.first, other: sweep.second };
  var kMostLines = 24;

  // Sizes as everywhere, 1M for 1048576, and names in words.
  keys.forEach(function (key) {
    key.isSize = key.name === "size_bytes";
    if (key.isSize) { key.values = key.numbers.map(page.sizeText); }
    key.name = page.words(key.name);
  });
  figures.forEach(function (figure) { figure.name = page.words(figure.name); });
  function keyText(key, value) { return keys[key].name + " " + keys[key].values[value]; }
  function rowText(row) {
    return row.keys.map(function (value, key) { return keyText(key, value); }).join("\n");
  }
  function figureText(row, figure) {
    return figures[figure].name + " " + page.numberText(row.figures[figure]);
  }
  function has(figure) {
    return function (row) { return row.figures[figure] !== null; };
  }
  function part(id, title, note) {
    var section = d3.select("#sweep").append("section").attr("id", id);
    page.list(id, title);
    section.append("h2").text(title);
    section.append("p").attr("class", "soft").text(note);
    return section;
  }
  // A list to choose from; `of` are [name, value].
  function choice(tools, label, of, value, change) {
    var box = tools.append("label").text(label + " ").append("select");
    box.selectAll("option").data(of).enter().append("option")
      .attr("value", function (item) { return item[1]; })
      .property("selected", function (item) { return item[1] === value; })
      .text(function (item) { return item[0]; });
    box.on("change", function () { change(+this.value); });
    return box;
  }
  function named(list) { return list.map(function (item, index) { return [item.name, index]; }); }
  function clear(host) { host.selectAll("*").remove(); }

  // Place on an axis: the number itself, or the place among the values.
  function placeOf(key, value) {
    return keys[key].numbers ? keys[key].numbers[value] : value;
  }
  function isPower(number) { return /^1(\.0*)?e/.test(number.toExponential()); }
  function isWide(numbers) {
    var ends = d3.extent(numbers);
    return ends[0] > 0 && ends[1] / ends[0] >= 32;
  }

  function drawLines(host) {
    clear(host);
    var lines = {}, order = [];
    rows.filter(has(at.figure)).forEach(function (row) {
      var name = row.keys.map(function (value, key) {
        return key === at.x ? null : keyText(key, value);
      }).filter(function (text) { return text !== null; }).join(", ");
      if (!lines[name]) { lines[name] = []; order.push(name); }
      lines[name].push([placeOf(at.x, row.keys[at.x]), row.figures[at.figure],
        keyText(at.x, row.keys[at.x]) + "\n" + figureText(row, at.figure)]);
    });
    var shown = order.slice(0, kMostLines).map(function (name) {
      return { name: name || figures[at.figure].name,
        points: lines[name].sort(function (a, b) { return a[0] - b[0]; }) };
    });
    var all = d3.merge(shown.map(function (one) { return one.points; }));
    var canLog = d3.min(all, function (p) { return p[1]; }) > 0;
    lineChart(page, host, {
      label: figures[at.figure].name + " by " + keys[at.x].name, xLabel: keys[at.x].name,
      xText: keys[at.x].isSize ? page.sizeText : page.numberText,
      yLabel: figures[at.figure].name, names: keys[at.x].numbers ? null : keys[at.x].values,
      xLog: Boolean(keys[at.x].numbers) && isWide(keys[at.x].numbers), yLog: at.log && canLog,
      series: shown
    });
    if (order.length > kMostLines) {
      host.append("p").attr("class", "soft").text("The first " + kMostLines + " of " +
        order.length + " lines; the table has all.");
    }
  }

  function drawMap(host) {
    clear(host);
    var across = keys[at.x].values, down = keys[at.y].values;
    var cells = rows.filter(has(at.figure)).filter(function (row) {
      return row.keys.every(function (value, key) {
        return key === at.x || key === at.y || value === (at.fixed[key] || 0);
      });
    });
    var room = host.node().clientWidth, left = Math.min(190, room * 0.34), top = 8, row = 30;
    var letters = Math.floor(left / 7), cell = Math.min(110, (room - left - 20) / across.length);
    var height = top + down.length * row + 46;
    var ends = d3.extent(cells, function (one) { return one.figures[at.figure]; });
    var colour = page.scaleOf(kLook.map, ends[0], ends[1] > ends[0] ? ends[1] : ends[0] + 1);
    var svg = host.append("svg").attr("width", left + across.length * cell + 20)
      .attr("height", height).attr("tabindex", 0).attr("role", "img")
      .attr("aria-label", figures[at.figure].name + " by " + keys[at.x].name + " and " +
        keys[at.y].name + "; arrows choose a field");
    var detail = host.append("div").attr("class", "detail").attr("aria-live", "polite");
    var marks = cells.map(function (one) {
      var x = left + one.keys[at.x] * cell, y = top + one.keys[at.y] * row;
      var value = one.figures[at.figure], of = svg.append("g");
      of.append("rect").attr("class", "field").attr("x", x).attr("y", y).attr("width", cell - 1)
        .attr("height", row - 1).attr("fill", colour(value));
      if (cell > 44) {
        of.append("text").attr("x", x + cell / 2).attr("y", y + 19).attr("text-anchor", "middle")
          .style("fill", page.inkOn(colour(value)))
          .text(page.numberText(value));
      }
      return { at: [x + cell / 2, y + row / 2], text: rowText(one) + "\n" +
        figureText(one, at.figure) };
    });
    down.forEach(function (name, index) {
      svg.append("text").attr("x", left - 8).attr("y", top + index * row + 19)
        .attr("text-anchor", "end").text(page.cut(name, letters));
    });
    var every = Math.ceil(across.length / Math.max(1, Math.floor((room - left) / 60)));
    across.forEach(function (name, index) {
      if (index % every) { return; }
      svg.append("text").attr("x", left + (index + 0.5) * cell)
        .attr("y", top + down.length * row + 16).attr("text-anchor", "middle")
        .text(page.cut(name, Math.max(6, cell * every / 7)));
    });
    svg.append("text").attr("x", left + across.length * cell / 2).attr("y", height - 8)
      .attr("text-anchor", "middle").text(keys[at.x].name);
    svg.append("text").attr("x", left - 8).attr("y", height - 8).attr("text-anchor", "end")
      .text(page.cut(keys[at.y].name, letters)).append("title").text(keys[at.y].name);
    pickable(page, svg, detail, marks);
    page.legend(host.append("div").attr("class", "legend"), colour.domain().map(
      function (value) { return [page.numberText(value), colour(value)]; }));
  }

  // Points that no other beats in both figures, and a step line through them.
  function front(points) {
    var best = null;
    return points.slice().sort(function (a, b) {
      return (a.good[0] - b.good[0]) || (a.good[1] - b.good[1]);
    }).filter(function (point) {
      if (best !== null && point.good[1] >= best) { return false; }
      best = point.good[1];
      return true;
    });
  }
  function drawTrade(host) {
    clear(host);
    var points = rows.filter(has(at.one)).filter(has(at.other)).map(function (row) {
      var values = [row.figures[at.one], row.figures[at.other]];
      return { values: values, row: row, good: values.map(function (value, index) {
        return figures[index ? at.other : at.one].isMore ? -value : value;
      }) };
    });
    function scale(index, range) {
      var ends = d3.extent(points, function (p) { return p.values[index]; });
      if (isWide(ends)) {
        return d3.scale.log().domain([ends[0] / 1.5, ends[1] * 1.5]).range(range);
      }
      var room = (ends[1] - ends[0]) * 0.06 || Math.abs(ends[0]) * 0.1 || 1;
      return d3.scale.linear().domain([ends[0] - room, ends[1] + room]).range(range);
    }
    var box = chartBox(host, figures[at.one].name + " against " + figures[at.other].name +
      "; arrows choose a point", 400), svg = box.svg;
    var x = scale(0, [box.left, box.width - box.right]);
    var y = scale(1, [box.height - box.bottom, box.top]), best = front(points);
    var detail = host.append("div").attr("class", "detail").attr("aria-live", "polite");
    [["bottom", x, "translate(0," + (box.height - box.bottom) + ")"],
      ["left", y, "translate(" + box.left + ",0)"]].forEach(function (side) {
      var axis = d3.svg.axis().scale(side[1]).orient(side[0]).ticks(box.isNarrow ? 4 : 7)
        .tickFormat(page.numberText);
      if (side[1].base) { axis.tickValues(side[1].ticks().filter(isPower)); }
      svg.append("g").attr("class", "axis").attr("transform", side[2]).call(axis);
    });
    function label(figure) {
      return figures[figure].name + (figures[figure].isMore ? " (more is better)"
        : " (less is better)");
    }
    axisNames(box, label(at.one), label(at.other));
    svg.append("path").attr("class", "front").attr("fill", "none").attr("stroke", "#d55e00")
      .attr("stroke-width", 2).attr("d", d3.svg.line()
        .x(function (p) { return x(p.values[0]); }).y(function (p) { return y(p.values[1]); })(
          best));
    // The best above the others.
    points.sort(function (a, b) { return best.indexOf(a) - best.indexOf(b); });
    points.forEach(function (point) {
      var isBest = best.indexOf(point) >= 0;
      svg.append("path").attr("class", isBest ? "best" : "beaten")
        .attr("d", d3.svg.symbol().type(isBest ? "diamond" : "circle").size(isBest ? 110 : 40)())
        .attr("transform", "translate(" + x(point.values[0]) + "," + y(point.values[1]) + ")")
        .style("fill", isBest ? "#d55e00" : "var(--back)")
        .style("stroke", isBest ? "var(--ink)" : "var(--soft)");
    });
    drawnLegend(host, [{ name: "no other is better in both", mark: "diamond", fill: "#d55e00" },
      { name: "others", mark: "circle", fill: "var(--back)" }], function (entry, item) {
      entry.append("path").attr("d", d3.svg.symbol().type(item.mark).size(80)())
        .attr("transform", "translate(15,7)").style("fill", item.fill)
        .style("stroke", "var(--soft)");
    });
    pickable(page, svg, detail, points.map(function (point) {
      return { at: [x(point.values[0]), y(point.values[1])], text: rowText(point.row) + "\n" +
        figureText(point.row, at.one) + "\n" + figureText(point.row, at.other) };
    }));
  }

  var lines = part("lines", "Lines", "A line for each combination of what is not on the x axis.");
  var lineTools = lines.append("div").attr("class", "tools");
  var lineHost = lines.append("div").attr("id", "lines-chart");
  choice(lineTools, "figure", named(figures), at.figure, function (value) {
    at.figure = value;
    redraw();
  });
  choice(lineTools, "x", named(keys), at.x, function (value) {
    if (value === at.y) { at.y = at.x; }
    at.x = value;
    rebuildMapTools();
    redraw();
  });
  var log = lineTools.append("label");
  log.append("input").attr("type", "checkbox").on("change", function () {
    at.log = this.checked;
    redraw();
  });
  log.append("span").text(" logarithm of the figure");

  var mapTools = null, mapHost = null;
  function rebuildMapTools() {
    if (!mapTools) { return; }
    clear(mapTools);
    choice(mapTools, "down", named(keys).filter(function (item) { return item[1] !== at.x; }),
      at.y, function (value) {
        at.y = value;
        rebuildMapTools();
        redraw();
      });
    keys.forEach(function (key, index) {
      if (index !== at.x && index !== at.y && key.values.length > 1) {
        choice(mapTools, key.name, key.values.map(function (value, i) { return [value, i]; }),
          at.fixed[index] || 0, function (value) {
            at.fixed[index] = value;
            redraw();
          });
      }
    });
  }
  if (keys.length > 1) {
    var map = part("map", "Map",
      "The figure above, with its x axis across. What is not on an axis stays as chosen here.");
    mapTools = map.append("div").attr("class", "tools");
    mapHost = map.append("div").attr("id", "map-chart");
    rebuildMapTools();
  }
  var tradeHost = null;
  if (figures.length > 1) {
    var trade = part("trade", "Trade",
      "Two figures of every point; the marked ones are those that no other beats in both.");
    var tradeTools = trade.append("div").attr("class", "tools");
    tradeHost = trade.append("div").attr("id", "trade-chart");
    choice(tradeTools, "across", named(figures), at.one, function (value) {
      at.one = value;
      redraw();
    });
    choice(tradeTools, "up", named(figures), at.other, function (value) {
      at.other = value;
      redraw();
    });
  }
  function redraw() {
    drawLines(lineHost);
    if (mapHost) { drawMap(mapHost); }
    if (tradeHost) { drawTrade(tradeHost); }
  }
  page.drawn(redraw);
}

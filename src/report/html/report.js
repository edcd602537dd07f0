// SPDX-License-Identifier: Apache-2.0
// Draws what the page's data say, with d3 (version 3): its scales, axes and zoom. Nothing is
// fetched.
(function () {
  "use strict";
  var data = JSON.parse(document.getElementById("data").textContent);
  // Okabe and Ito: told apart with any colour vision.
  var kColours = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442",
    "#999999"];
  var byId = function (id) { return document.getElementById(id); };
  var shown = [];

  function show(id, title) {
    byId(id).hidden = false;
    shown.push([id, title]);
  }

  function timeText(seconds) {
    var size = Math.abs(seconds);
    if (size === 0) { return "0"; }
    return size >= 0.1 ? +seconds.toPrecision(6) + " s"
      : size >= 1e-4 ? +(seconds * 1e3).toPrecision(6) + " ms"
        : +(seconds * 1e6).toPrecision(5) + " us";
  }

  function tip(text, event) {
    var box = byId("tip");
    box.style.display = text ? "block" : "none";
    if (text) {
      box.textContent = text;
      var x = Math.min(event.clientX + 14, window.innerWidth - box.offsetWidth - 8);
      var y = event.clientY + 16;
      if (y + box.offsetHeight > window.innerHeight) { y = event.clientY - box.offsetHeight - 10; }
      box.style.left = Math.max(4, x) + "px";
      box.style.top = y + "px";
    }
  }

  // A canvas as sharp as the screen; returns its context, in CSS pixels.
  function sized(canvas, height) {
    var ratio = window.devicePixelRatio || 1;
    var width = canvas.clientWidth;
    canvas.style.height = height + "px";
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    var context = canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    return context;
  }

  // In a selection or the element of an id.
  function legend(host, items) {
    var entry = (host.append ? host : d3.select("#" + host)).selectAll("span.entry").data(items).enter().append("span")
      .attr("class", "entry");
    entry.append("span").attr("class", "swatch")
      .style("background", function (item) { return item[1]; });
    entry.append("span").text(function (item) { return item[0]; });
  }

  function drawHead() {
    document.title = data.title;
    byId("title").textContent = data.title;
    byId("subtitle").textContent = data.subtitle;
    var card = d3.select("#summary").selectAll("div").data(data.summary).enter().append("div")
      .attr("class", "card");
    card.append("b").text(function (item) { return item[1]; });
    card.append("span").text(function (item) { return item[0]; });
  }

  function drawBreakdown() {
    if (!data.breakdown.length) { return; }
    show("breakdown", "Where the time goes");
    var parts = data.breakdown.slice().sort(function (a, b) { return b[1] - a[1]; });
    var total = d3.sum(parts, function (part) { return part[1]; });
    var width = 1130, row = 24, left = 120, right = 190;
    var x = d3.scale.linear().domain([0, parts[0][1]]).range([0, width - left - right]);
    var svg = d3.select("#breakdown-chart").append("svg").attr("width", width)
      .attr("height", 56 + parts.length * row).attr("role", "img")
      .attr("aria-label", "Parts of the time, largest first");
    var all = d3.scale.linear().domain([0, total]).range([0, width - 2]);
    var at = 0;
    parts.forEach(function (part, index) {
      var colour = kColours[index % kColours.length];
      var group = svg.append("g");
      group.append("rect").attr("x", all(at)).attr("y", 0).attr("height", 30)
        .attr("width", Math.max(0, all(part[1]) - 1)).attr("fill", colour);
      if (all(part[1]) > 70) {
        group.append("text").attr("x", all(at) + 6).attr("y", 20)
          .style("fill", ["#f0e442", "#e69f00", "#56b4e9"].indexOf(colour) < 0 ? "#fff" : "#000")
          .text(part[0]);
      }
      at += part[1];
      var y = 46 + index * row;
      group.append("text").attr("x", left - 8).attr("y", y + 13).attr("text-anchor", "end")
        .text(part[0]);
      group.append("rect").attr("class", "part").attr("x", left).attr("y", y)
        .attr("width", Math.max(1, x(part[1]))).attr("height", row - 6).attr("fill", colour);
      group.append("text").attr("x", left + x(part[1]) + 8).attr("y", y + 13)
        .text(timeText(part[1]) + ", " + (100 * part[1] / total).toFixed(1) + " %");
    });
  }

  function drawCurves() {
    if (!data.curves.length) { return; }
    show("curves", "Bus bandwidth by size");
    var width = 1130, height = 380, left = 70, bottom = 44, top = 14, right = 190;
    var points = d3.merge(data.curves.map(function (curve) { return curve.points; }));
    var x = d3.scale.log().base(2).domain(d3.extent(points, function (p) { return p[0]; }))
      .range([left, width - right]);
    var most = d3.max(points, function (p) { return Math.max(p[1], p[3] || 0); });
    var y = d3.scale.linear().domain([0, most]).nice().range([height - bottom, top]);
    var svg = d3.select("#curves-chart").append("svg").attr("width", width).attr("height", height);
    svg.append("g").attr("class", "grid").attr("transform", "translate(" + left + ",0)")
      .call(d3.svg.axis().scale(y).orient("left").tickSize(-(width - left - right)).tickFormat(""));
    var sizes = d3.set(points.map(function (p) { return p[0]; })).values().map(Number)
      .sort(d3.ascending);
    var every = Math.ceil(sizes.length / 10);
    svg.append("g").attr("class", "axis")
      .attr("transform", "translate(0," + (height - bottom) + ")")
      .call(d3.svg.axis().scale(x).orient("bottom")
        .tickValues(sizes.filter(function (_, i) { return i % every === 0; }))
        .tickFormat(sizeText));
    svg.append("g").attr("class", "axis").attr("transform", "translate(" + left + ",0)")
      .call(d3.svg.axis().scale(y).orient("left"));
    svg.append("text").attr("x", left).attr("y", height - 6).text("message size");
    svg.append("text").attr("transform", "translate(16," + height / 2 + ") rotate(-90)")
      .attr("text-anchor", "middle").text("bus bandwidth (GB/s)");
    data.curves.forEach(function (curve, index) {
      var colour = kColours[index % kColours.length];
      var band = curve.points.filter(function (p) { return p[2] !== null; });
      svg.append("path").attr("fill", colour).attr("opacity", 0.16).attr("d", d3.svg.area()
        .x(function (p) { return x(p[0]); }).y0(function (p) { return y(p[2]); })
        .y1(function (p) { return y(p[3]); })(band));
      svg.append("path").attr("class", "curve").attr("fill", "none").attr("stroke", colour)
        .attr("stroke-width", 2).attr("stroke-dasharray", index < 4 ? null : "6 3")
        .attr("d", d3.svg.line().x(function (p) { return x(p[0]); })
          .y(function (p) { return y(p[1]); })(curve.points));
      svg.append("g").selectAll("circle").data(curve.points).enter().append("circle")
        .attr("cx", function (p) { return x(p[0]); }).attr("cy", function (p) { return y(p[1]); })
        .attr("r", 4).attr("fill", colour)
        .on("mousemove", function (p) {
          tip(curve.name + "\n" + sizeText(p[0]) + ": " + p[1].toPrecision(4) + " GB/s" +
            (p[2] === null ? "" : "\n" + p[2].toPrecision(4) + " to " + p[3].toPrecision(4)) +
            (p[4] ? "\n" + p[4] : ""), d3.event);
        })
        .on("mouseout", function () { tip(""); });
      var corner = [width - right + 16, top + 14 + 20 * index];
      var row = svg.append("g").attr("transform", "translate(" + corner + ")");
      row.append("line").attr("x2", 20).attr("y1", -4).attr("y2", -4).attr("stroke", colour)
        .attr("stroke-width", 3).attr("stroke-dasharray", index < 4 ? null : "6 3");
      row.append("text").attr("x", 26).text(curve.name);
    });
  }

  function sizeText(bytes) {
    var units = ["", "K", "M", "G", "T"], at = 0;
    while (bytes >= 1024 && at < units.length - 1) { bytes /= 1024; at += 1; }
    return +bytes.toPrecision(4) + units[at];
  }

  // Four digits with the prefix of a thousand. Ticks come with their place, which does not matter.
  function numberText(value) {
    var size = Math.abs(value), prefixes = ["", "k", "M", "G", "T", "P"], at = 0;
    if (size > 0 && size < 1e-3) { return value.toExponential(2); }
    if (size >= 1e4) {
      while (size >= 1e3 && at < prefixes.length - 1) { size /= 1e3; at += 1; }
    }
    return (value < 0 ? "-" : "") + +size.toPrecision(4) + prefixes[at];
  }
  function cut(text, most) {
    return text.length > most ? text.slice(0, Math.max(1, most - 1)) + "\u2026" : text;
  }

  // Viridis, which is even in lightness, from nothing to the busiest link.
  var heat = d3.scale.linear().clamp(true)
    .range(["#e8e6f0", "#7ad151", "#22a884", "#2a788e", "#440154"]).interpolate(d3.interpolateRgb);
  function percent(use) { return (100 * use).toFixed(use < 0.1 ? 2 : 1) + " %"; }

  function drawLinks() {
    var links = data.links;
    byId("links-note").textContent = links.note;
    if (!links.units.length) {
      if (links.note) { show("links", "Links"); byId("links-canvas").remove(); }
      return;
    }
    show("links", "Links");
    var most = Math.max(1e-4, d3.max(links.edges.map(function (edge) {
      return Math.max(edge[2], edge[3]);
    }).concat(d3.merge(links.units.map(function (unit) {
      return unit.inside.map(function (each) { return each[1]; });
    })))));
    var steps = [0, 0.25, 0.5, 0.75, 1].map(function (share) { return share * most; });
    heat.domain(steps);
    legend("links-legend", steps.map(function (use) {
      return [percent(use) + " busy", heat(use)];
    }));
    var canvas = byId("links-canvas");
    var tiers = d3.max(links.units, function (unit) { return unit.level; });
    var servers = links.units.filter(function (unit) { return unit.level === 0; });
    var perRow = Math.min(servers.length, 64), lines = Math.ceil(servers.length / perRow);
    var height = 60 + tiers * 110 + lines * 34, spots = [];

    function place(width) {
      var counts = {};
      links.units.forEach(function (unit) {
        var index = counts[unit.level] || 0;
        counts[unit.level] = index + 1;
        unit.index = index;
      });
      var cell = (width - 20) / perRow;
      links.units.forEach(function (unit) {
        if (unit.level === 0) {
          unit.x = 10 + (unit.index % perRow + 0.5) * cell;
          unit.y = height - lines * 34 - 6 + Math.floor(unit.index / perRow) * 34 + 12;
          unit.w = Math.max(3, Math.min(70, cell - 3));
          unit.h = 24;
        } else {
          unit.x = 10 + (unit.index + 0.5) * (width - 20) / counts[unit.level];
          unit.y = 24 + (tiers - unit.level) * 110;
          unit.w = Math.max(3, Math.min(70, (width - 20) / counts[unit.level] - 4));
          unit.h = 18;
        }
      });
    }
    function draw() {
      var context = sized(canvas, height), width = canvas.clientWidth;
      place(width);
      spots = [];
      links.edges.slice().sort(function (a, b) {
        return Math.max(a[2], a[3]) - Math.max(b[2], b[3]);
      }).forEach(function (edge) {
        var a = links.units[edge[0]], b = links.units[edge[1]];
        context.strokeStyle = heat(Math.max(edge[2], edge[3]));
        context.lineWidth = links.edges.length > 600 ? 0.8 : 2;
        context.beginPath();
        context.moveTo(a.x, a.y);
        context.lineTo(b.x, b.y);
        context.stroke();
      });
      context.font = "11px system-ui, 'DejaVu Sans', sans-serif";
      context.textAlign = "center";
      context.textBaseline = "middle";
      links.units.forEach(function (unit) {
        var x0 = unit.x - unit.w / 2, y0 = unit.y - unit.h / 2, inside = unit.inside;
        context.fillStyle = "#fff";
        context.fillRect(x0, y0, unit.w, unit.h);
        inside.forEach(function (each, index) {
          context.fillStyle = heat(each[1]);
          context.fillRect(x0, y0 + index * unit.h / inside.length, unit.w,
            unit.h / inside.length);
        });
        context.strokeStyle = "#57606a";
        context.lineWidth = 1;
        context.strokeRect(x0, y0, unit.w, unit.h);
        if (unit.w > 44) {
          // Black with a white edge is read on any colour.
          context.strokeStyle = "#fff";
          context.lineWidth = 3;
          context.strokeText(unit.name, unit.x, unit.y, unit.w - 4);
          context.fillStyle = "#000";
          context.fillText(unit.name, unit.x, unit.y, unit.w - 4);
        }
        spots.push({ x: x0, y: y0, w: unit.w, h: unit.h, unit: unit });
      });
    }
    function describe(unit) {
      var lines_ = [unit.name];
      unit.inside.forEach(function (each) {
        lines_.push(each[0] + " inside: busiest " + percent(each[1]) + ", mean " +
          percent(each[2]));
      });
      var of = links.edges.filter(function (edge) {
        return links.units[edge[0]] === unit || links.units[edge[1]] === unit;
      }).sort(function (a, b) { return Math.max(b[2], b[3]) - Math.max(a[2], a[3]); });
      of.slice(0, 6).forEach(function (edge) {
        var first = links.units[edge[0]] === unit, other = links.units[edge[first ? 1 : 0]];
        lines_.push("to " + other.name + ": out " + percent(edge[first ? 2 : 3]) + ", in " +
          percent(edge[first ? 3 : 2]) + (edge[4] > 1 ? ", " + edge[4] + " links" : ""));
      });
      if (of.length > 6) { lines_.push("and " + (of.length - 6) + " others"); }
      return lines_.join("\n");
    }
    canvas.addEventListener("mousemove", function (event) {
      var box = canvas.getBoundingClientRect(), px = event.clientX - box.left;
      var py = event.clientY - box.top;
      var hit = spots.filter(function (spot) {
        return px >= spot.x && px <= spot.x + spot.w && py >= spot.y && py <= spot.y + spot.h;
      })[0];
      tip(hit ? describe(hit.unit) : "", event);
    });
    canvas.addEventListener("mouseleave", function () { tip(""); });
    var chosen = -1;
    canvas.addEventListener("keydown", function (event) {
      var by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (by) {
        chosen = Math.max(0, Math.min(links.units.length - 1, chosen + by));
        byId("links-detail").textContent =
          describe(links.units[chosen]).replace(/\n/g, "; ");
        event.preventDefault();
      }
    });
    draw();
    window.addEventListener("resize", draw);
  }

  function drawTables() {
    data.tables.forEach(function (table, index) {
      var id = "table-" + index;
      var section = d3.select("#tables").append("section").attr("id", id);
      shown.push([id, table.title]);
      section.append("h2").text(table.title);
      if (table.note) { section.append("p").attr("class", "soft").text(table.note); }
      var grid = section.append("div").attr("class", "scroll").append("table");
      var kind = function (_, column) { return table.numeric[column] ? "n" : null; };
      grid.append("thead").append("tr").selectAll("th").data(table.columns).enter().append("th")
        .attr("scope", "col").attr("class", kind).text(String);
      grid.append("tbody").selectAll("tr").data(table.rows).enter().append("tr").selectAll("td")
        .data(function (row) { return row; }).enter().append("td").attr("class", kind)
        .text(String);
    });
  }

  function drawNotes() {
    if (!data.notes.length) { return; }
    show("notes", "Notes");
    d3.select("#notes-list").selectAll("li").data(data.notes).enter().append("li").text(String);
  }

  drawHead();
  drawBreakdown();
  drawCurves();
  var page = { data: data, show: show, byId: byId, sized: sized, legend: legend, tip: tip,
    timeText: timeText, colours: kColours, numberText: numberText, sizeText: sizeText, cut: cut,
    list: function (id, title) { shown.push([id, title]); } };
  drawCharts(page);
  drawSweep(page);
  drawTimeline(page);
  drawLinks();
  drawTables();
  drawNotes();
  d3.select("#contents").selectAll("a").data(shown).enter().append("a")
    .attr("href", function (item) { return "#" + item[0]; })
    .text(function (item) { return item[1]; });
  document.body.dataset.drawn = "yes";
})();

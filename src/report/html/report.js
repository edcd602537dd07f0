// SPDX-License-Identifier: Apache-2.0
// Draws what the page's data say, with d3 (version 3): its scales, axes and zoom. Nothing is
// fetched.
(function () {
  "use strict";
  var data = JSON.parse(document.getElementById("data").textContent);
  var byId = function (id) { return document.getElementById(id); };
  var shown = [], draws = [];

  function show(id, title) {
    byId(id).hidden = false;
    shown.push([id, title]);
  }

  // Draws now, and again when the width or the ground changes: a phone is turned, a page printed.
  function drawn(draw) {
    draws.push(draw);
    draw();
  }
  function drawAgain() { draws.forEach(function (draw) { draw(); }); }
  function watch() {
    var root = document.documentElement, width = root.clientWidth;
    window.addEventListener("resize", function () {
      if (root.clientWidth !== width) { width = root.clientWidth; drawAgain(); }
    });
    window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAgain);
    window.addEventListener("beforeprint", function () {
      root.dataset.printed = "yes";
      drawAgain();
    });
    window.addEventListener("afterprint", function () {
      delete root.dataset.printed;
      drawAgain();
    });
  }

  // A colour of the style sheet, for what is drawn on canvases: "ink", "back".
  function paint(name) {
    return getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
  }
  function isDark() { return paint("back") !== "#ffffff"; }
  // Black or white, whichever is read better on a colour (WCAG 2.1, relative luminance).
  function inkOn(colour) {
    var rgb = d3.rgb(colour), parts = [rgb.r, rgb.g, rgb.b].map(function (part) {
      part /= 255;
      return part <= 0.03928 ? part / 12.92 : Math.pow((part + 0.055) / 1.055, 2.4);
    });
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2] > 0.179 ? "#000" : "#fff";
  }
  // A colour for each number between these, of five.
  function scaleOf(colours, low, high) {
    return d3.scale.linear().clamp(true).range(colours).interpolate(d3.interpolateRgb)
      .domain(colours.map(function (_, index) {
        return low + index / (colours.length - 1) * (high - low);
      }));
  }

  function timeText(seconds) {
    var size = Math.abs(seconds);
    if (size === 0) { return "0"; }
    return size >= 0.1 ? +seconds.toPrecision(6) + " s"
      : size >= 1e-4 ? +(seconds * 1e3).toPrecision(6) + " ms"
        : +(seconds * 1e6).toPrecision(5) + " us";
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
  // "busbw_gb_per_s" as "bus bandwidth (GB/s)"; keys of files, which have dots, stay as they are.
  function words(key) {
    var parts = key.split("_");
    if (kLook.names[key] || key.indexOf(".") >= 0) { return kLook.names[key] || key; }
    for (var from = 1; from < parts.length; from += 1) {
      var unit = kLook.units[parts.slice(from).join("_")];
      if (unit) { return words(parts.slice(0, from).join("_")) + " (" + unit + ")"; }
    }
    return parts.map(function (part) { return kLook.words[part] || part; }).join(" ");
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

  // In a selection or the element of an id, instead of what is there.
  function legend(host, items) {
    host = host.append ? host : d3.select("#" + host);
    host.selectAll("*").remove();
    var entry = host.selectAll("span.entry").data(items).enter().append("span")
      .attr("class", "entry");
    entry.append("span").attr("class", "swatch")
      .style("background", function (item) { return item[1]; });
    entry.append("span").text(function (item) { return item[0]; });
  }

  function drawHead() {
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
    var host = d3.select("#breakdown-chart");
    var whole = host.append("div").attr("class", "whole").attr("aria-hidden", "true");
    var list = host.append("div").attr("class", "parts");
    parts.forEach(function (part, index) {
      var colour = kLook.series[index % kLook.series.length], share = 100 * part[1] / total;
      whole.append("span").style("background", colour).style("color", inkOn(colour))
        .style("width", share + "%").style("padding-left", share < 4 ? "0" : null)
        .text(share < 4 ? "" : words(part[0]));
      list.append("span").attr("class", "of").text(words(part[0]));
      list.append("span").append("div").attr("class", "part").style("background", colour)
        .style("width", 100 * part[1] / parts[0][1] + "%");
      list.append("span").text(timeText(+part[1].toPrecision(4)) + ", " + share.toFixed(1) + " %");
    });
  }

  function drawCurves() {
    if (!data.curves.length) { return; }
    show("curves", "Bus bandwidth by size");
    var series = data.curves.map(function (curve) {
      return { name: curve.name,
        band: curve.points.filter(function (p) { return p[2] !== null; }).map(function (p) {
          return [p[0], p[2], p[3]];
        }),
        points: curve.points.map(function (p) {
          return [p[0], p[1], sizeText(p[0]) + ": " + p[1].toPrecision(4) + " GB/s" +
            (p[2] === null ? "" : "\n" + p[2].toPrecision(4) + " to " + p[3].toPrecision(4)) +
            (p[4] ? "\n" + p[4] : "")];
        }) };
    });
    drawn(function () {
      lineChart(page, d3.select("#curves-chart"), { label: "Bus bandwidth by size",
        xLabel: "message size", yLabel: "bus bandwidth (GB/s)", xLog: true, xText: sizeText,
        series: series });
    });
  }

  // What a cell is sorted by: a number, with the unit of a time or the prefix of a size; else text.
  var kFactors = { ps: 1e-12, ns: 1e-9, us: 1e-6, ms: 1e-3, s: 1, KiB: 1024, MiB: 1048576,
    GiB: 1073741824, TiB: 1099511627776, K: 1024, M: 1048576, G: 1073741824, T: 1099511627776 };
  function sortKey(text) {
    var found = /^([-+]?[\d.]+(?:e[-+]?\d+)?) ?([A-Za-z]*)/.exec(text);
    return found ? +found[1] * (kFactors[found[2]] || 1) : text;
  }
  function sorted(rows, column, sign) {
    return rows.map(function (row, index) { return [sortKey(row[column]), index, row]; })
      .sort(function (a, b) {
        var isText = typeof a[0] !== typeof b[0] ? (typeof a[0] === "string") - 0.5
          : a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : 0;
        return sign * isText || a[1] - b[1];
      }).map(function (one) { return one[2]; });
  }

  function drawTable(section, table) {
    var box = section.append("div").attr("class", "scroll").attr("tabindex", 0)
      .attr("role", "region").attr("aria-label", table.title);
    var grid = box.append("table"), order = { column: -1, sign: 1 };
    var kind = function (_, column) { return table.numeric[column] ? "n" : null; };
    var heads = grid.append("thead").append("tr").selectAll("th").data(table.columns).enter()
      .append("th").attr("scope", "col").attr("class", kind);
    var body = grid.append("tbody");
    function fill(rows) {
      body.selectAll("*").remove();
      body.selectAll("tr").data(rows).enter().append("tr").selectAll("td")
        .data(function (row) { return row; }).enter().append("td").attr("class", kind)
        .text(String);
    }
    heads.append("button").attr("title", "sort").text(function (name) {
      return name.replace(/^[a-z0-9_]+/, words);
    }).on("click", function (_, column) {
      order = { column: column, sign: order.column === column ? -order.sign : 1 };
      heads.attr("aria-sort", function (_, index) {
        return index !== column ? null : order.sign > 0 ? "ascending" : "descending";
      });
      fill(sorted(table.rows, column, order.sign));
    });
    fill(table.rows);
  }

  function drawTables() {
    data.tables.forEach(function (table, index) {
      var id = "table-" + index;
      var section = d3.select("#tables").append("section").attr("id", id);
      shown.push([id, table.title]);
      section.append("h2").text(table.title);
      if (table.note) { section.append("p").attr("class", "soft").text(table.note); }
      if (table.columns.length) { drawTable(section, table); }
      section.selectAll("p.remark").data(table.remarks).enter().append("p").text(String);
    });
  }

  function drawNotes() {
    if (!data.notes.length) { return; }
    show("notes", "Notes");
    d3.select("#notes-list").selectAll("li").data(data.notes).enter().append("li").text(String);
  }

  var page = { data: data, show: show, byId: byId, sized: sized, legend: legend, tip: tip,
    timeText: timeText, colours: kLook.series, numberText: numberText, sizeText: sizeText,
    cut: cut, words: words, paint: paint, isDark: isDark, inkOn: inkOn, scaleOf: scaleOf,
    drawn: drawn, list: function (id, title) { shown.push([id, title]); } };
  drawHead();
  drawBreakdown();
  drawCurves();
  drawCharts(page);
  drawSweep(page);
  drawTimeline(page);
  drawLinks(page);
  drawTables();
  drawNotes();
  d3.select("#contents").selectAll("a").data(shown).enter().append("a")
    .attr("href", function (item) { return "#" + item[0]; })
    .text(function (item) { return item[1]; });
  watch();
  document.body.dataset.drawn = "yes";
})();

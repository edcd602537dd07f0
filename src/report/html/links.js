// SPDX-License-Identifier: Apache-2.0
// The use of links: a box for each server and switch, a line for all links between two of them.
// Colours go from 0 to 100 %, on every page the same.

function drawLinks(page) {
  "use strict";
  var links = page.data.links, byId = page.byId;
  byId("links-note").textContent = links.note;
  if (!links.units.length) {
    if (links.note) { page.show("links", "Links"); byId("links-canvas").remove(); }
    return;
  }
  page.show("links", "Links");
  var canvas = byId("links-canvas"), heat = null, spots = [];
  var tiers = d3.max(links.units, function (unit) { return unit.level; });
  var servers = links.units.filter(function (unit) { return unit.level === 0; });
  function percent(use) { return (100 * use).toFixed(use < 0.1 ? 2 : 1) + " %"; }
  function busiest(edge) { return Math.max(edge[2], edge[3]); }

  // Boxes of servers are in lines below the tiers of switches; returns the height.
  function place(width) {
    var perRow = Math.max(1, Math.min(servers.length, 64, Math.floor(width / 16)));
    var lines = Math.ceil(servers.length / perRow), height = 60 + tiers * 110 + lines * 34;
    var counts = {}, cell = (width - 20) / perRow;
    links.units.forEach(function (unit) {
      unit.index = counts[unit.level] || 0;
      counts[unit.level] = unit.index + 1;
    });
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
    return height;
  }
  function drawEdges(context) {
    links.edges.slice().sort(function (a, b) { return busiest(a) - busiest(b); })
      .forEach(function (edge) {
        var a = links.units[edge[0]], b = links.units[edge[1]];
        context.strokeStyle = heat(busiest(edge));
        context.lineWidth = links.edges.length > 600 ? 0.8 : 2;
        context.beginPath();
        context.moveTo(a.x, a.y);
        context.lineTo(b.x, b.y);
        context.stroke();
      });
  }
  function drawUnit(context, unit) {
    var x0 = unit.x - unit.w / 2, y0 = unit.y - unit.h / 2, inside = unit.inside;
    context.fillStyle = page.paint("back");
    context.fillRect(x0, y0, unit.w, unit.h);
    inside.forEach(function (each, index) {
      context.fillStyle = heat(each[1]);
      context.fillRect(x0, y0 + index * unit.h / inside.length, unit.w, unit.h / inside.length);
    });
    context.strokeStyle = page.paint("soft");
    context.lineWidth = 1;
    context.strokeRect(x0, y0, unit.w, unit.h);
    if (unit.w > 44) {
      // Ink with an edge of the ground is read on any colour.
      context.strokeStyle = page.paint("back");
      context.lineWidth = 3;
      context.strokeText(unit.name, unit.x, unit.y, unit.w - 4);
      context.fillStyle = page.paint("ink");
      context.fillText(unit.name, unit.x, unit.y, unit.w - 4);
    }
    spots.push({ x: x0, y: y0, w: unit.w, h: unit.h, unit: unit });
  }
  function draw() {
    heat = page.scaleOf(kLook.share[page.isDark() ? "dark" : "light"], 0, 1);
    page.legend("links-legend", [0, 0.25, 0.5, 0.75, 1].map(function (use) {
      return [100 * use + " % busy", heat(use)];
    }));
    var context = page.sized(canvas, place(canvas.clientWidth));
    spots = [];
    drawEdges(context);
    context.font = "11px system-ui, 'DejaVu Sans', sans-serif";
    context.textAlign = "center";
    context.textBaseline = "middle";
    links.units.forEach(function (unit) { drawUnit(context, unit); });
  }
  function describe(unit) {
    var lines = [unit.name];
    unit.inside.forEach(function (each) {
      lines.push(each[0] + " inside: busiest " + percent(each[1]) + ", mean " + percent(each[2]));
    });
    var of = links.edges.filter(function (edge) {
      return links.units[edge[0]] === unit || links.units[edge[1]] === unit;
    }).sort(function (a, b) { return busiest(b) - busiest(a); });
    of.slice(0, 6).forEach(function (edge) {
      var first = links.units[edge[0]] === unit, other = links.units[edge[first ? 1 : 0]];
      lines.push("to " + other.name + ": out " + percent(edge[first ? 2 : 3]) + ", in " +
        percent(edge[first ? 3 : 2]) + (edge[4] > 1 ? ", " + edge[4] + " links" : ""));
    });
    if (of.length > 6) { lines.push("and " + (of.length - 6) + " others"); }
    return lines.join("\n");
  }
  canvas.addEventListener("mousemove", function (event) {
    var box = canvas.getBoundingClientRect(), px = event.clientX - box.left;
    var py = event.clientY - box.top;
    var hit = spots.filter(function (spot) {
      return px >= spot.x && px <= spot.x + spot.w && py >= spot.y && py <= spot.y + spot.h;
    })[0];
    page.tip(hit ? describe(hit.unit) : "", event);
  });
  canvas.addEventListener("mouseleave", function () { page.tip(""); });
  var chosen = -1;
  canvas.addEventListener("keydown", function (event) {
    var by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (by) {
      chosen = Math.max(0, Math.min(links.units.length - 1, chosen + by));
      byId("links-detail").textContent = describe(links.units[chosen]).replace(/\n/g, "; ");
      event.preventDefault();
    }
  });
  page.drawn(draw);
}

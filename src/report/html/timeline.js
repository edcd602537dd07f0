// SPDX-License-Identifier: Apache-2.0
// The timeline of a report: a canvas, as there may be 100,000 spans and more. Only what is to be
// seen is looked at, found by bisection.

// Tracks as typed arrays: starts and ends in ns, names as numbers.
function decodeTracks(timeline) {
  var text = atob(timeline.spans), at = 0;
  function number() {
    var value = 0, factor = 1, byte = 0;
    do {
      byte = text.charCodeAt(at);
      at += 1;
      value += (byte & 127) * factor;
      factor *= 128;
    } while (byte & 128);
    return value;
  }
  return timeline.tracks.map(function (track) {
    var count = track.count, start = 0;
    var made = { group: track.group, name: track.name, start: new Float64Array(count),
      end: new Float64Array(count), what: new Uint32Array(count), longest: 0 };
    for (var i = 0; i < count; i += 1) {
      start += number();
      made.start[i] = start;
      made.end[i] = start + number();
      made.what[i] = number();
      made.longest = Math.max(made.longest, made.end[i] - start);
    }
    return made;
  });
}

function drawTimeline(page) {
  "use strict";
  var data = page.data, show = page.show, byId = page.byId, sized = page.sized;
  var legend = page.legend, tip = page.tip, timeText = page.timeText, kColours = page.colours;
  var timeline = data.timeline;
  byId("timeline-note").textContent = timeline.note;
  if (!timeline.tracks.length) {
    if (timeline.note) { show("timeline", "Timeline"); d3.select("#timeline .tools").remove();
      byId("timeline-canvas").remove(); }
    return;
  }
  show("timeline", "Timeline");
  var tracks = decodeTracks(timeline), names = timeline.names;
  var canvas = byId("timeline-canvas"), row = 17, head = 26;
  var left = 190;  // Less on a narrow page.
  var visible = Math.min(tracks.length, 30), first = 0;
  var height = head + visible * row + 4;
  var end = d3.max(tracks, function (t) { return t.longest ? d3.max(t.end) : 0; }) || 1;
  var kinds = d3.set(names.map(kindOf)).values().sort();
  function kindOf(name) { return name.split(/[ ,:]/)[0].replace(/[0-9]+$/, ""); }
  var colourOf = names.map(function (name) {
    return kColours[kinds.indexOf(kindOf(name)) % kColours.length];
  });
  legend("timeline-legend", kinds.slice(0, 16).map(function (kind) {
    return [kind, kColours[kinds.indexOf(kind) % kColours.length]];
  }));
  var x = d3.scale.linear().domain([0, end]);
  var chosen = null;

  // The first span of a track that may reach past a time.
  function from(track, time) {
    return d3.bisectLeft(track.start, time - track.longest);
  }
  function draw() {
    var context = sized(canvas, height), width = canvas.clientWidth;
    var ink = page.paint("ink"), soft = page.paint("soft");
    left = Math.min(190, Math.round(width * 0.34));
    x.range([left, width - 6]);
    var domain = x.domain();
    context.font = "12px system-ui, 'DejaVu Sans', sans-serif";
    context.textBaseline = "middle";
    x.ticks(Math.max(2, Math.floor((width - left) / 100))).forEach(function (tick) {
      context.fillStyle = page.paint("faint");
      context.fillRect(x(tick), head - 4, 1, height);
      context.fillStyle = soft;
      context.textAlign = "center";
      context.fillText(timeText(tick * 1e-9), Math.min(x(tick), width - 34), 11);
    });
    context.textAlign = "left";
    for (var r = 0; r < visible; r += 1) {
      var track = tracks[first + r], y = head + r * row;
      context.fillStyle = ink;
      context.fillText(page.cut(track.group + ", " + track.name, Math.floor(left / 6.6)), 4,
        y + row / 2, left - 10);
      var last = -1;
      for (var i = from(track, domain[0]); i < track.start.length; i += 1) {
        if (track.start[i] > domain[1]) { break; }
        if (track.end[i] < domain[0]) { continue; }
        var a = Math.max(left, x(track.start[i])), b = Math.min(width - 6, x(track.end[i]));
        // What is narrower than a pixel is drawn once for each pixel.
        if (b - a < 1 && Math.floor(a) === last) { continue; }
        last = Math.floor(a);
        context.fillStyle = colourOf[track.what[i]];
        context.fillRect(a, y + 2, Math.max(1, b - a - (b - a > 3 ? 0.6 : 0)), row - 4);
        if (b - a > 60) {
          context.save();
          context.beginPath();
          context.rect(a, y, b - a - 3, row);
          context.clip();
          context.fillStyle = page.inkOn(colourOf[track.what[i]]);
          context.fillText(names[track.what[i]], a + 3, y + row / 2 + 0.5);
          context.restore();
        }
      }
    }
    if (chosen && chosen.track >= first && chosen.track < first + visible) {
      var of = tracks[chosen.track];
      context.strokeStyle = ink;
      context.lineWidth = 2;
      var from_x = Math.max(left, x(of.start[chosen.span]));
      context.strokeRect(from_x, head + (chosen.track - first) * row + 1,
        Math.max(2, Math.min(width, x(of.end[chosen.span])) - from_x), row - 2);
    }
    canvas.dataset.domain = domain.join(" ");
  }
  function describe(track, i) {
    return names[track.what[i]] + "\n" + track.group + ", " + track.name + "\nfrom " +
      timeText(track.start[i] * 1e-9) + " for " +
      timeText((track.end[i] - track.start[i]) * 1e-9);
  }
  function choose(track, span) {
    chosen = { track: track, span: span };
    byId("timeline-detail").textContent = describe(tracks[track], span).replace(/\n/g, ", ");
    var domain = x.domain(), of = tracks[track], length = domain[1] - domain[0];
    if (of.start[span] < domain[0] || of.end[span] > domain[1]) {
      var middle = (of.start[span] + of.end[span]) / 2;
      move(middle - length / 2, middle + length / 2);
    }
    draw();
  }
  function at(event) {
    var box = canvas.getBoundingClientRect();
    var r = Math.floor((event.clientY - box.top - head) / row), px = event.clientX - box.left;
    if (r < 0 || r >= visible || px < left) { return null; }
    var track = tracks[first + r], time = x.invert(px), reach = x.invert(px + 1.5) - time;
    var best = null;
    for (var i = from(track, time - reach); i < track.start.length; i += 1) {
      if (track.start[i] > time + reach) { break; }
      if (track.end[i] >= time - reach) { best = { track: first + r, span: i }; }
    }
    return best;
  }
  function move(begin, finish) {
    var length = Math.min(end, Math.max(10, finish - begin));
    begin = Math.max(0, Math.min(end - length, begin));
    x.domain([begin, begin + length]);
    zoom.x(x);
    draw();
  }
  var zoom = d3.behavior.zoom().scaleExtent([1e-9, 1e9]).on("zoom", function () {
    var domain = x.domain();
    move(domain[0], domain[1]);
  });
  function scaled(factor) {
    var domain = x.domain(), middle = (domain[0] + domain[1]) / 2;
    var half = (domain[1] - domain[0]) / 2 * factor;
    move(middle - half, middle + half);
  }
  function shifted(share) {
    var domain = x.domain(), by = (domain[1] - domain[0]) * share;
    move(domain[0] + by, domain[1] + by);
  }
  function rows(by) {
    first = Math.max(0, Math.min(tracks.length - visible, first + by));
    draw();
  }
  function step(by) {
    if (!chosen) { choose(first, 0); return; }
    var span = chosen.span + by;
    if (span >= 0 && span < tracks[chosen.track].start.length) { choose(chosen.track, span); }
  }
  var keys = { "+": function () { scaled(0.5); }, "=": function () { scaled(0.5); },
    "-": function () { scaled(2); }, "0": function () { move(0, end); },
    ArrowLeft: function () { shifted(-0.2); }, ArrowRight: function () { shifted(0.2); },
    ArrowUp: function () { rows(-1); }, ArrowDown: function () { rows(1); },
    PageUp: function () { rows(-visible); }, PageDown: function () { rows(visible); },
    "[": function () { step(-1); }, "]": function () { step(1); } };
  canvas.addEventListener("keydown", function (event) {
    if (keys[event.key] && !event.ctrlKey && !event.metaKey) {
      keys[event.key]();
      event.preventDefault();
    }
  });
  canvas.addEventListener("mousemove", function (event) {
    var hit = at(event);
    tip(hit ? describe(tracks[hit.track], hit.span) : "", event);
  });
  canvas.addEventListener("mouseleave", function () { tip(""); });
  canvas.addEventListener("click", function (event) {
    var hit = at(event);
    if (hit) { choose(hit.track, hit.span); }
  });
  byId("zoom-in").onclick = keys["+"];
  byId("zoom-out").onclick = keys["-"];
  byId("zoom-all").onclick = keys["0"];
  byId("rows-up").onclick = function () { rows(-5); };
  byId("rows-down").onclick = function () { rows(5); };
  if (visible === tracks.length) {
    byId("rows-up").remove();
    byId("rows-down").remove();
  }
  page.drawn(draw);
  zoom.x(x);
  d3.select(canvas).call(zoom);
}


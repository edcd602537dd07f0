// SPDX-License-Identifier: Apache-2.0
// The use of links that a report has: a box for each server and switch, a line for all links between
// two of them. Colours go from 0 to 100 %, as in reports.

function shareColour(share) {
  const colours = kLook.share[matchMedia("(prefers-color-scheme: dark)").matches ? "dark"
    : "light"];
  const place = Math.min(Math.max(share, 0), 1) * (colours.length - 1);
  const index = Math.min(Math.floor(place), colours.length - 2);
  const channel = (colour, at) => parseInt(colour.slice(1 + 2 * at, 3 + 2 * at), 16);
  const mixed = [0, 1, 2].map((at) => Math.round(channel(colours[index], at) +
    (place - index) * (channel(colours[index + 1], at) - channel(colours[index], at))));
  return "rgb(" + mixed.join(",") + ")";
}

function percentText(share) { return (100 * share).toFixed(share < 0.1 ? 2 : 1) + " %"; }

// The links of the text of a report, whose data have no "<".
function linksOf(report) {
  return JSON.parse(report.match(/id="data"[^>]*>([^<]*)</)[1]).links;
}

// Servers in lines below the tiers of switches. Returns the height of all.
function placeUnits(units, width) {
  const tiers = Math.max(0, ...units.map((unit) => unit.level));
  const perRow = Math.min(units.filter((unit) => unit.level === 0).length, 32) || 1;
  const counts = {};
  units.forEach((unit) => {
    unit.index = counts[unit.level] || 0;
    counts[unit.level] = unit.index + 1;
  });
  const top = 20 + tiers * 80;
  units.forEach((unit) => {
    const among = unit.level === 0 ? perRow : counts[unit.level];
    unit.w = Math.min(70, width / among - 4);
    unit.x = (unit.index % among + 0.5) * width / among;
    unit.y = unit.level === 0 ? top + Math.floor(unit.index / among) * 34
      : 20 + (tiers - unit.level) * 80;
  });
  return top + Math.ceil((counts[0] || 1) / perRow) * 34;
}

function unitTitle(unit) {
  return [unit.name, ...unit.inside.map(([name, most, mean]) => name + " inside: busiest " +
    percentText(most) + ", mean " + percentText(mean))].join("\n");
}

function unitOfLinks(unit) {
  const group = svgElement("g", {});
  const box = { x: unit.x - unit.w / 2, width: unit.w };
  unit.inside.forEach(([, most], index) => group.append(svgElement("rect", { ...box,
    y: unit.y - 12 + 24 * index / unit.inside.length, height: 24 / unit.inside.length,
    fill: shareColour(most) })));
  group.append(svgElement("rect", { ...box, y: unit.y - 12, height: 24, class: "box",
    ...(unit.inside.length ? { fill: "none" } : {}) }),
  svgElement("title", {}, unitTitle(unit)));
  if (unit.w > 44) {
    group.append(svgElement("text", { x: unit.x, y: unit.y + 4, "text-anchor": "middle" },
      unit.name));
  }
  return group;
}

// Draws into `host`; the busiest links are listed below for whoever sees no drawing.
function showLinks(host, links) {
  host.append(element("h2", { textContent: "Links" }),
    element("p", { className: "soft", textContent: links.note }));
  if (!links.units.length) { return; }
  const width = 640;
  const svg = svgElement("svg", { class: "links", role: "img",
    viewBox: "0 0 " + width + " " + placeUnits(links.units, width),
    "aria-label": "Servers and switches; the table has the busiest links" });
  const busiest = (edge) => Math.max(edge[2], edge[3]);
  const edges = links.edges.slice().sort((a, b) => busiest(a) - busiest(b));
  edges.forEach((edge) => {
    const [a, b] = [links.units[edge[0]], links.units[edge[1]]];
    const line = svgElement("line", { x1: a.x, y1: a.y, x2: b.x, y2: b.y,
      stroke: shareColour(busiest(edge)) });
    line.append(svgElement("title", {}, a.name + " to " + b.name + ": " + percentText(edge[2]) +
      ", back " + percentText(edge[3])));
    svg.append(line);
  });
  svg.append(...links.units.map(unitOfLinks));
  const legend = element("p", { className: "legend" });
  [0, 0.25, 0.5, 0.75, 1].forEach((share) => {
    const mark = element("i", {});
    mark.style.background = shareColour(share);
    legend.append(mark, 100 * share + " % busy ");
  });
  const rows = edges.reverse().slice(0, 8).map((edge) => [
    { text: links.units[edge[0]].name + " to " + links.units[edge[1]].name },
    { text: percentText(edge[2]), isNumber: true },
    { text: percentText(edge[3]), isNumber: true }, { text: String(edge[4]), isNumber: true }]);
  host.append(legend, svg);
  if (rows.length) { host.append(tableOf(["busiest", "forth", "back", "links"], rows)); }
}

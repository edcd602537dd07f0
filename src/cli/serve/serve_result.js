// SPDX-License-Identifier: Apache-2.0
// A result of --format json as figures, bars, tables and a chart. Keys say what they are, by words
// and a unit at the end.

// Ends of keys and their units, longest first.
const kUnits = [["_gb_per_s", "GB/s"], ["_gbit_per_s", "Gb/s"], ["_per_s_per_gpu", "/s per GPU"],
  ["_per_s", "/s"], ["_tflops_per_gpu", "TFLOP/s per GPU"], ["_tflops", "TFLOP/s"],
  ["_gib", "GiB"], ["_bytes", "B"], ["_kwh", "kWh"], ["_kw", "kW"], ["_kj", "kJ"], ["_j", "J"],
  ["_us", "us"], ["_ms", "ms"], ["_s", "s"]];

function unitOf(key) {
  return key === "bytes" ? ["", "B"] : kUnits.find(([end]) => key.endsWith(end)) || ["", ""];
}

function labelOf(key) {
  const [end] = unitOf(key);
  return key.slice(0, key.length - end.length).replace(/_/g, " ").trim() || key;
}

function numberText(value) {
  const size = Math.abs(value);
  if (value === 0 || !isFinite(value)) { return String(value); }
  if (Number.isInteger(value) && size < 1e6) { return String(value); }
  return size >= 1e6 || size < 1e-3 ? value.toExponential(3) : String(+value.toPrecision(4));
}

function scaled(value, step, units) {
  let index = 0;
  while (index + 1 < units.length && Math.abs(value) >= step) { value /= step; index += 1; }
  return numberText(value) + " " + units[index];
}

// A value with its unit: "4.462 s", "12 us", "31.2 GiB".
function valueText(key, value) {
  if (typeof value !== "number") { return value === null ? "" : String(value); }
  const unit = unitOf(key)[1];
  if (unit === "B") { return scaled(value, 1024, ["B", "KiB", "MiB", "GiB", "TiB"]); }
  if (unit === "s") { return scaled(value * 1e6, 1000, ["us", "ms", "s"]); }
  if (unit === "us") { return scaled(value, 1000, ["us", "ms", "s"]); }
  return numberText(value) + (unit ? " " + unit : "");
}

function isGroup(value) {
  return value !== null && typeof value === "object" && !Array.isArray(value);
}

// Numbers by name, of the result and of the objects in it. Picoseconds stand beside seconds.
function figuresOf(result, prefix) {
  let figures = [];
  Object.entries(result).forEach(([key, value]) => {
    if (key.endsWith("_ps")) { return; }
    if (typeof value === "number") { figures.push([(prefix || "") + key, value]); }
    if (isGroup(value) && !prefix) { figures = figures.concat(figuresOf(value, key + ": ")); }
  });
  return figures;
}

function figureKey(name) {
  const [group, key] = name.includes(": ") ? name.split(": ") : ["", name];
  // "breakdown_s: linear": the unit is that of the group.
  return unitOf(key)[0] ? key : key + unitOf(group)[0];
}

function figureLabel(name) {
  return name.split(": ").map(labelOf).join(": ");
}

function cardsOf(result) {
  const cards = Object.entries(result).filter(([key, value]) => typeof value === "number" &&
    !key.endsWith("_ps") && !/_(low|high)_[a-z]+$/.test(key));
  return element("div", { className: "cards" }, ...cards.map(([key, value]) => {
    const stem = key.slice(0, key.length - unitOf(key)[0].length);
    const [low, high] = ["_low", "_high"].map((end) => result[stem + end + unitOf(key)[0]]);
    const range = low === undefined || high === undefined ? ""
      : ", " + valueText(key, low) + " to " + valueText(key, high);
    return element("div", { className: "card" },
      element("b", { textContent: valueText(key, value) }),
      element("span", { textContent: labelOf(key) + range }));
  }));
}

// Parts of a whole, the largest first. Returns nothing where an object is no such thing.
function barsOf(key, parts) {
  const rows = Object.entries(parts).filter(([, value]) => value > 0)
    .sort((a, b) => b[1] - a[1]);
  const isSum = unitOf(key)[0] && Object.values(parts).every((value) => typeof value === "number");
  if (!isSum || !rows.length) { return null; }
  const sum = rows.reduce((all, [, value]) => all + value, 0);
  const share = (value) => (100 * value / sum).toFixed(1) + " %";
  const bars = element("div", { className: "bars" });
  rows.forEach(([name, value]) => {
    const bar = element("div", { className: "bar" });
    bar.style.width = 100 * value / rows[0][1] + "%";
    bars.append(element("span", { textContent: labelOf(name) }), element("div", {}, bar),
      element("span", { textContent: valueText(key, value) + ", " + share(value) }));
  });
  return [element("h2", { textContent: labelOf(key) }),
    element("p", { className: "most",
      textContent: "Most of it is " + labelOf(rows[0][0]) + ", " + share(rows[0][1]) + "." }),
    bars];
}

function cell(name, text, isNumber) {
  const kLong = 40;
  return element(name, { textContent: text,
    className: isNumber ? "n" : text.length > kLong ? "long" : "" });
}

function tableOf(headings, rows) {
  const numeric = headings.map((_, index) => rows.some((row) => row[index].isNumber));
  const head = element("tr", {}, ...headings.map((text, i) => cell("th", text, numeric[i])));
  const body = rows.map((row) => element("tr", {},
    ...row.map((one, index) => cell("td", one.text, numeric[index]))));
  return element("div", { className: "scroll", tabIndex: 0, role: "region", ariaLabel: "Table" },
    element("table", {}, element("thead", {}, head), element("tbody", {}, ...body)));
}

// Objects of one kind as rows. A column without any value is left out.
function rowsTable(rows) {
  const keys = [...new Set(rows.flatMap((row) => Object.keys(row)))].filter((key) =>
    !key.endsWith("_ps") && rows.some((row) => row[key] !== null && row[key] !== undefined &&
      row[key] !== "" && typeof row[key] !== "object"));
  return tableOf(keys.map(labelOf), rows.map((row) => keys.map((key) => ({
    text: row[key] === undefined || typeof row[key] === "object" ? "" : valueText(key, row[key]),
    isNumber: typeof row[key] === "number" }))));
}

function svgElement(name, attributes, text) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  Object.entries(attributes).forEach(([key, value]) => made.setAttribute(key, value));
  made.textContent = text || "";
  return made;
}

// Bus bandwidth over size, with logarithms of sizes.
function chartOf(rows) {
  const points = rows.filter((row) => row.size_bytes > 0 && row.busbw_gb_per_s > 0)
    .map((row) => [Math.log2(row.size_bytes), row.busbw_gb_per_s, row.size_bytes]);
  if (points.length < 2) { return null; }
  const left = 60, right = 620, top = 24, bottom = 220;
  const [first, last] = [points[0][0], points[points.length - 1][0]];
  const most = Math.max(...points.map((point) => point[1]));
  const x = (point) => left + (right - left) * (point[0] - first) / Math.max(1e-9, last - first);
  const y = (value) => bottom - (bottom - top) * value / most;
  const svg = svgElement("svg", { class: "chart", viewBox: "0 0 640 260", role: "img",
    "aria-label": "Bus bandwidth by size; the table has the same figures" });
  [0, 0.5, 1].forEach((share) => {
    svg.append(svgElement("line", { x1: left, x2: right, y1: y(share * most), y2: y(share * most) }),
      svgElement("text", { x: left - 6, y: y(share * most) + 4, "text-anchor": "end" },
        numberText(+(share * most).toPrecision(3))));
  });
  svg.append(svgElement("text", { x: left, y: 14 }, "bus bandwidth in GB/s"),
    svgElement("path", { d: "M" + points.map((p) => x(p) + "," + y(p[1])).join("L") }));
  points.forEach((point, index) => {
    svg.append(svgElement("circle", { cx: x(point), cy: y(point[1]), r: 3 }));
    if (index % Math.ceil(points.length / 6) === 0) {
      svg.append(svgElement("text", { x: x(point), y: bottom + 18, "text-anchor": "middle" },
        valueText("size_bytes", point[2])));
    }
  });
  return svg;
}

function listOf(title, lines) {
  return element("details", {}, element("summary", { textContent: title }),
    element("ul", {}, ...lines.map((line) => element("li", { textContent: line }))));
}

// Entries of one level: cards, then times, then other bars, tables and groups; texts and the rest
// are details.
function showResult(host, result) {
  const rest = [];
  const rank = ([key]) => (key.endsWith("_s") ? 0 : 1);
  host.append(cardsOf(result));
  Object.entries(result).sort((a, b) => rank(a) - rank(b)).forEach(([key, value]) => {
    if (key.endsWith("_ps") || typeof value === "number") { return; }
    const isList = Array.isArray(value);
    if (isList && value.length && value.every(isGroup)) {
      host.append(element("h2", { textContent: labelOf(key) }));
      const chart = chartOf(value);
      host.append(...(chart ? [chart] : []), rowsTable(value));
      value.filter((row) => row.resources).forEach((row) => showResult(host, row));
    } else if (isList && value.length && key !== "settings") {
      host.append(listOf(labelOf(key), value.map(String)));
    } else if (isGroup(value) && barsOf(key, value)) {
      host.append(...barsOf(key, value));
    } else if (isGroup(value) && Object.values(value).some((one) => typeof one === "number") &&
               key !== "plan") {
      host.append(element("h2", { textContent: labelOf(key) }), cardsOf(value));
    } else if (isGroup(value)) {
      Object.entries(value).forEach(([name, one]) => rest.push([labelOf(key) + ": " + name, one]));
    } else if (!isList) {
      rest.push([labelOf(key), value]);
    }
  });
  if (rest.length) {
    host.append(element("details", {}, element("summary", { textContent: "Set-up in words" }),
      tableOf(["what", "value"], rest.map(([name, value]) => [{ text: name },
        { text: typeof value === "object" ? JSON.stringify(value) : String(value) }]))));
  }
}

// Of the figures that both have, those that differ, by how much, and how many are equal.
function differencesOf(a, b) {
  const second = new Map(figuresOf(b));
  const both = figuresOf(a).filter(([name]) => second.has(name));
  const rows = both.filter(([name, value]) => second.get(name) !== value);
  const number = (text) => ({ text, isNumber: true });
  const equal = element("p", { className: "soft",
    textContent: both.length - rows.length + " other figures are equal." });
  return [tableOf(["figure", "A", "B", "B to A"], rows.map(([name, value]) => {
    const other = second.get(name);
    const change = value === 0 ? "new" : (100 * (other - value) / value).toFixed(2) + " %";
    return [{ text: figureLabel(name) }, number(valueText(figureKey(name), value)),
      number(valueText(figureKey(name), other)), number(change)];
  })), equal];
}

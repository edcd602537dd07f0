// SPDX-License-Identifier: Apache-2.0
// The fragment of the page's address has the command lines of both set-ups. A change of a control
// runs them a moment later, and whatever came out is kept by its command line.

(function () {
  const kDelay = 350;  // Milliseconds between the last change and the run.
  const kStart = "step --cluster dgx-h100 --nodes 4 --workload llama-3-8b --costs";
  const by = (id) => document.getElementById(id);
  const results = new Map();  // By command line: {text} or {error}.
  const reports = new Map();  // Of drawings of links, the same.
  const sides = {};  // `a` and, when two are compared, `b`: {model, line, run, elements}.
  let tables = null;
  let side = "a";
  let hasLinks = false;  // Whether links are drawn.

  function headers() {
    const token = sessionStorage.getItem("token");
    return Object.assign({ "Content-Type": "application/json" },
      token ? { Authorization: "Bearer " + token } : {});
  }

  function askToken(isWanted) {
    by("token-row").hidden = !isWanted;
    if (isWanted) { by("token").focus(); }
  }

  // Returns the last line of a run, and gives the others to tell().
  async function ask(request, signal, tell) {
    const answer = await fetch("/api/run", { method: "POST", headers: headers(), signal,
      body: JSON.stringify(request) });
    if (answer.status === 401) { askToken(true); }
    const reader = answer.body.getReader();
    const decoder = new TextDecoder();
    let text = "";
    let last = null;
    for (let chunk = await reader.read(); !chunk.done; chunk = await reader.read()) {
      text += decoder.decode(chunk.value, { stream: true });
      const lines = text.split("\n");
      text = lines.pop();
      lines.filter((line) => line).forEach((line) => { last = JSON.parse(line); tell(last); });
    }
    return last && (last.output !== undefined || last.error) ? last
      : { error: "the server ended the answer" };
  }

  function told(event) {
    return event.waiting ? "Waits for " + event.waiting + " other runs."
      : event.seconds ? "Runs for " + Math.round(event.seconds) + " s."
        : event.line || "";
  }

  function say(one, text, isBad) {
    one.status.textContent = text;
    one.status.className = isBad ? "status bad" : "status";
  }

  function download(name, type, text) {
    const link = element("a", { href: URL.createObjectURL(new Blob([text], { type })),
      download: name });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  async function exportAs(one, form, name, type) {
    say(one, "Makes " + name + ".");
    const words = modelWords(tables, one.model);
    const last = await ask({ words, form }, undefined, (event) => say(one, told(event)));
    say(one, last.error || name + " is made.", Boolean(last.error));
    if (!last.error) { download(name, type, last.output); }
  }

  async function exportSetup(one, form) {
    const name = form + ".yaml";
    const last = await ask({ words: modelWords(tables, one.model), form }, undefined, () => {});
    say(one, last.error || name + " is made.", Boolean(last.error));
    if (!last.error) { download(name, "text/yaml", last.output); }
  }

  // A sweep file of one point, whose texts are JSON, which YAML has in it.
  function sweepText(one) {
    const text = JSON.stringify;
    const line = lineOf(modelWords(tables, one.model));
    const values = Object.entries(one.model.values).filter(([name]) => name !== "cluster");
    const options = values.map(([name, list]) => "  " + name + ": " +
      (list[0] === "" ? "true" : list.length > 1 ? text(list) : text(list[0])));
    return ["# trainyard sweep FILE gives the figures of", "#   trainyard " + line,
      "title: " + text(line), "command: " + one.model.command, "options:", ...options,
      "vary:", "  cluster: " + text(one.model.values.cluster || []), ""].join("\n");
  }

  function button(text, act, id) {
    const made = element("button", { type: "button", textContent: text, id: id || "" });
    made.addEventListener("click", act);
    return made;
  }

  async function copy(one, text, name) {
    try {
      await navigator.clipboard.writeText(text);
      say(one, name + " is in the clipboard.");
    } catch (error) {
      say(one, "The clipboard cannot be had: " + text, true);
    }
  }

  function makeSide(name) {
    const one = sides[name];
    one.line = element("code", { className: "line", id: name + "-line" });
    one.status = element("p", { className: "status", id: name + "-status" });
    one.status.setAttribute("role", "status");
    one.shown = element("div", { id: name + "-shown" });
    one.cancel = button("Cancel", () => one.run && one.run.abort());
    one.cancel.hidden = true;
    const command = () => commandOf(tables, one.model);
    one.report = button("Report", () => exportAs(one, "report", "report.html", "text/html"),
      name + "-report");
    one.workload = button("Workload file", () => exportSetup(one, "workload"), name + "-workload");
    one.links = button("Links", () => {
      hasLinks = !hasLinks;
      Object.values(sides).forEach((each) => { setAddress(); drawLinks(each); });
    }, name + "-links");
    one.drawn = element("div", { id: name + "-drawn" });
    one.sweep = button("Sweep file", () => download("sweep.yaml", "text/yaml", sweepText(one)),
      name + "-yaml");
    one.refresh = () => {
      one.report.hidden = one.links.hidden = !command().reports;
      one.workload.hidden = !command().options.some((row) => row.name === "workload");
      one.sweep.hidden = !command().swept;
    };
    by(name).replaceChildren(element("h2", { textContent: "Set-up " + name.toUpperCase() }),
      one.line, element("div", { className: "tools" },
        button("Copy command", () => copy(one, one.line.textContent, "The command line")),
        button("Copy link", () => copy(one, location.href, "The link")), one.links, one.report,
        button("CSV", () => exportAs(one, "csv", "result.csv", "text/csv"), name + "-csv"),
        button("Cluster file", () => exportSetup(one, "cluster"), name + "-cluster"),
        one.workload, one.sweep, one.cancel),
      one.status, one.drawn, one.shown);
  }

  function showDifferences() {
    const [a, b] = [sides.a.result, sides.b && sides.b.result];
    const isThere = Boolean(a && b);
    by("differences").hidden = !isThere;
    if (isThere) { by("differences-table").replaceChildren(...differencesOf(a, b)); }
  }

  // The links of a side, which its report has, if they are wanted and it has a result.
  async function drawLinks(one) {
    one.links.setAttribute("aria-pressed", String(hasLinks));
    one.drawn.replaceChildren();
    if (!hasLinks || !one.result || !commandOf(tables, one.model).reports) { return; }
    const line = one.line.textContent;
    if (!reports.has(line)) {
      one.drawn.textContent = "Draws links.";
      const words = modelWords(tables, one.model);
      const last = await ask({ words, form: "report" }, undefined, () => {});
      reports.set(line, last.error ? { error: last.error } : linksOf(last.output));
    }
    if (line !== one.line.textContent || !hasLinks) { return; }
    one.drawn.replaceChildren();
    const links = reports.get(line);
    if (links.error) {
      one.drawn.append(element("p", { className: "bad", textContent: links.error }));
    } else {
      showLinks(one.drawn, links);
    }
  }

  function showSide(one, outcome) {
    one.shown.replaceChildren();
    one.result = outcome.error ? null : JSON.parse(outcome.output);
    if (one.result) { showResult(one.shown, one.result); }
    say(one, outcome.error || "Took " + outcome.seconds.toFixed(2) + " s.", outcome.error);
    document.body.dataset.shown = String(+(document.body.dataset.shown || 0) + 1);
    showDifferences();
    drawLinks(one);
  }

  async function runSide(one) {
    const words = modelWords(tables, one.model);
    const line = "trainyard " + lineOf(words);
    if (one.run) { one.run.abort(); }
    const run = one.run = new AbortController();
    if (!results.has(line)) {
      one.cancel.hidden = false;
      say(one, "Runs.");
      try {
        const last = await ask({ words }, run.signal, (event) => one.run === run &&
          say(one, told(event)));
        if (!/^(cancelled|the server)|expected at most .* wait/.test(last.error || "")) {
          results.set(line, last);
        }
        if (one.run === run) { showSide(one, last); }
      } catch (error) {
        if (one.run === run) {
          say(one, run.signal.aborted ? "Cancelled." : "The server does not answer.", true);
        }
      }
    } else {
      showSide(one, results.get(line));
    }
    if (one.run === run) {
      one.run = null;
      one.cancel.hidden = true;
    }
  }

  function setAddress() {
    const lines = new URLSearchParams();
    Object.entries(sides).forEach(([name, each]) => {
      lines.set(name, lineOf(modelWords(tables, each.model)));
    });
    if (hasLinks) { lines.set("show", "links"); }
    history.replaceState(null, "", "#" + lines);
  }

  function changed(one) {
    one.line.textContent = "trainyard " + lineOf(modelWords(tables, one.model));
    one.refresh();
    setAddress();
    say(one, "Changed.");
    clearTimeout(one.timer);
    one.timer = setTimeout(() => runSide(one), kDelay);
  }

  function showForm() {
    by("command").value = sides[side].model.command;
    showFields(tables, by("fields"), () => sides[side].model, (model) => {
      sides[side].model = model;
      changed(sides[side]);
    });
    by("side-" + side).checked = true;
  }

  // Sets up one side or two, by their models.
  function show(models) {
    Object.values(sides).forEach((one) => one.run && one.run.abort());
    delete sides.b;
    Object.entries(models).forEach(([name, model]) => {
      sides[name] = { model };
      makeSide(name);
    });
    const isTwo = Boolean(sides.b);
    side = sides[side] ? side : "a";
    by("b").hidden = by("side-b-label").hidden = !isTwo;
    by("pair").classList.toggle("two", isTwo);
    by("compare").textContent = isTwo ? "Leave B" : "Compare with a second one";
    showForm();
    Object.values(sides).forEach(changed);
  }

  function fromAddress() {
    const lines = new URLSearchParams(location.hash.slice(1));
    hasLinks = lines.get("show") === "links";
    const models = { a: wordsModel(tables, wordsOf(lines.get("a") || kStart)) };
    if (lines.get("b")) { models.b = wordsModel(tables, wordsOf(lines.get("b"))); }
    show(models);
  }

  async function start() {
    const answer = await fetch("/api/options", { headers: headers() });
    askToken(answer.status === 401);
    if (!answer.ok) {
      if (answer.status !== 401) { by("fields").textContent = (await answer.json()).error; }
      return;
    }
    tables = await answer.json();
    by("command").replaceChildren(...tables.commands.map((one) =>
      element("option", { value: one.name, textContent: one.name })));
    fromAddress();
  }

  by("token").addEventListener("change", () => {
    sessionStorage.setItem("token", by("token").value);
    start();
  });
  by("command").addEventListener("input", () => {
    sides[side].model = withCommand(tables, sides[side].model, by("command").value);
    showForm();
    changed(sides[side]);
  });
  by("compare").addEventListener("click", () => {
    const { a, b } = sides;
    side = b ? "a" : "b";
    show(b ? { a: a.model } : { a: a.model, b: a.model });
  });
  ["a", "b"].forEach((name) => by("side-" + name).addEventListener("input", () => {
    side = name;
    showForm();
  }));
  by("form").addEventListener("submit", (event) => event.preventDefault());
  window.addEventListener("hashchange", () => tables && fromAddress());
  start();
}());

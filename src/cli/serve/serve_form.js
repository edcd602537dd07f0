// SPDX-License-Identifier: Apache-2.0
// Command lines as models, and the controls that change them. A model is {command, values, others}:
// the name of a command, for each option that is given the list of its values, and words that no
// table knows, which the server refuses. Controls are made of the tables that /api/options has.

"use strict";

// These come first; all others are below "More options".
const kFirst = ["operation", "file", "cluster", "workload", "model", "nodes", "gpus-per-node",
  "minbytes", "maxbytes", "algo", "runtime", "costs"];

// As a shell reads it back.
function quoted(word) {
  return /^[\w@%+=:,.\/-]+$/.test(word) ? word : "'" + word.replace(/'/g, "'\\''") + "'";
}

function lineOf(words) {
  return words.map(quoted).join(" ");
}

// The words of a line as quoted() writes them.
function wordsOf(line) {
  const words = [];
  for (const [word] of line.matchAll(/(?:[^\s'"\\]|\\.|'[^']*'|"[^"]*")+/g)) {
    words.push(word.replace(/'([^']*)'|"([^"]*)"|\\(.)/g, (_, a, b, c) => a ?? b ?? c));
  }
  return words;
}

function commandOf(tables, model) {
  return tables.commands.find((one) => one.name === model.command) || tables.commands[0];
}

// The words of a model: name, arguments, and options in the order of their table.
function modelWords(tables, model) {
  const command = commandOf(tables, model);
  const words = command.name.split(" ");
  command.arguments.forEach((row) => words.push(...(model.values[row.name] || [])));
  command.options.forEach((row) => (model.values[row.name] || []).forEach((value) => {
    if (row.value && value.startsWith("-")) {
      words.push("--" + row.name + "=" + value);
    } else {
      words.push("--" + row.name, ...(row.value ? [value] : []));
    }
  }));
  return words.concat(model.others);
}

// The model of words.
function wordsModel(tables, words) {
  const command = tables.commands.find((one) => {
    const name = one.name.split(" ");
    return name.every((part, index) => words[index] === part);
  }) || tables.commands[0];
  const model = { command: command.name, values: {}, others: [] };
  const places = command.arguments.map((row) => row.name);
  const rest = words.slice(command.name.split(" ").length);
  while (rest.length) {
    const word = rest.shift();
    const [, name, value] = word.match(/^--([^=]+)(?:=(.*))?$/s) || [];
    const row = command.options.find((one) => one.name === name);
    if (row) {
      const values = model.values[name] || (model.values[name] = []);
      values.push(row.value ? value ?? rest.shift() ?? "" : "");
    } else if (!name && places.length) {
      model.values[places.shift()] = [word];
    } else {
      model.others.push(word);
    }
  }
  return model;
}

// The model of another command with what both have. An argument without a value gets the first one;
// values that the command does not have are kept for the way back.
function withCommand(tables, model, name) {
  const changed = { command: name, values: Object.assign({}, model.values), others: [] };
  commandOf(tables, changed).arguments.forEach((row) => {
    const values = row.choices.concat(tables.names[row.name] || []);
    if (!changed.values[row.name] && values.length) { changed.values[row.name] = [values[0]]; }
  });
  return changed;
}

function element(name, properties, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

// A select of values, of which "" is called `none`.
function selectOf(id, values, none, chosen) {
  const select = element("select", { id });
  select.append(element("option", { value: "", textContent: none }));
  new Set([...values, ...(chosen ? [chosen] : [])]).forEach((value) => {
    select.append(element("option", { value, textContent: value }));
  });
  select.value = chosen || "";
  return select;
}

// The control of an option: names, choices, numbers, lines of a list, texts.
function controlOf(tables, row, id, values, isNeeded) {
  const first = values ? values[0] : "";
  const names = tables.names[row.name];
  if (names) {
    return selectOf(id, names.concat(tables.files), "none", first);
  }
  if (row.choices.length) {
    const none = isNeeded ? "none" : row.choices[0] + " (default)";
    return selectOf(id, row.choices, none, first);
  }
  if (row.repeats) {
    return element("textarea", { id, rows: 2, value: (values || []).join("\n") });
  }
  if (!row.value) {
    return element("input", { id, type: "checkbox", checked: values !== undefined });
  }
  const isNumber = row.value === "N";
  return element("input", { id, type: isNumber ? "number" : "text", value: first, min: 0,
    step: "any", placeholder: row.value });
}

function controlValues(control) {
  if (control.type === "checkbox") { return control.checked ? [""] : []; }
  if (control.tagName === "TEXTAREA") {
    return control.value.split("\n").map((line) => line.trim()).filter((line) => line);
  }
  return control.value === "" ? [] : [control.value];
}

function fieldOf(label, control, help) {
  const small = element("small", { id: control.id + "-help", textContent: help });
  control.setAttribute("aria-describedby", small.id);
  return element("p", { className: control.type === "checkbox" ? "field flag" : "field" },
    ...(control.type === "checkbox" ? [control, " "] : []),
    element("label", { htmlFor: control.id, textContent: label }),
    ...(control.type === "checkbox" ? [] : [control]), small);
}

function withValues(model, name, values) {
  const changed = Object.assign({}, model, { values: Object.assign({}, model.values) });
  if (values.length) { changed.values[name] = values; } else { delete changed.values[name]; }
  return changed;
}

// Fields of the settings that have a short word: each is one value of --set. The others of --set
// are lines of its own field.
function settingFields(command, model, change) {
  const isJob = command.options.some((row) => row.name === "workload");
  const known = command.settings.filter((one) => isJob || !/^(plan|batch)\./.test(one.key));
  const given = () => model().values.set || [];
  const isOf = (one) => (setting) => setting.startsWith(one.key + "=");
  const fields = known.map((one) => {
    const now = (given().find(isOf(one)) || "").slice(one.key.length + 1);
    const control = element("input", { id: "set-" + one.key, value: now, min: 0, step: "any",
      type: one.value === "N" ? "number" : "text", placeholder: "as the file has it" });
    control.addEventListener("input", () => {
      const others = given().filter((setting) => !isOf(one)(setting));
      change(withValues(model(), "set",
        others.concat(control.value === "" ? [] : [one.key + "=" + control.value])));
    });
    return fieldOf(one.key, control, "");
  });
  const isKnown = (setting) => known.some((one) => isOf(one)(setting));
  const lines = element("textarea", { id: "set", rows: 2,
    value: given().filter((setting) => !isKnown(setting)).join("\n") });
  lines.addEventListener("input", () => change(withValues(model(), "set",
    given().filter(isKnown).concat(controlValues(lines)))));
  fields.push(fieldOf("other settings", lines, "KEY=VALUE, one a line"));
  return fields;
}

// Puts the controls of the model into `host`. model() returns it as it is now; change(model) is
// called with what it becomes.
function showFields(tables, host, model, change) {
  const command = commandOf(tables, model());
  const field = (row) => {
    const control = controlOf(tables, row, "option-" + row.name, model().values[row.name],
      command.arguments.includes(row));
    control.addEventListener("input",
      () => change(withValues(model(), row.name, controlValues(control))));
    return fieldOf(row.name, control, row.help);
  };
  const rows = command.arguments.concat(command.options).filter((row) => row.name !== "set");
  const place = (row) => kFirst.indexOf(row.name);
  const first = rows.filter((row) => place(row) >= 0).sort((a, b) => place(a) - place(b));
  const more = rows.filter((row) => place(row) < 0);
  host.replaceChildren(...first.map(field));
  if (command.settings.length) {
    host.append(element("fieldset", {}, element("legend", { textContent: "Settings" }),
      ...settingFields(command, model, change)));
  }
  const isOpen = more.some((row) => model().values[row.name]);
  host.append(element("details", { id: "more", open: isOpen },
    element("summary", { textContent: "More options" }), ...more.map(field)));
}

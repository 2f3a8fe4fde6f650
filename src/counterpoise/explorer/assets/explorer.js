// The page of the explorer: plain DOM and SVG. What it is told is put into the page as text, never as markup.

const SVG = "http://www.w3.org/2000/svg";
const MOST_PINS = 3;
const VIEWS = ["verdicts", "ranges", "curve", "frontier", "segments"];
const LEAST_ALPHA = 0.01;

// ---------------------------------------------------------------- small helpers

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "value") node.value = value;
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) node.setAttribute(name, String(value));
  }
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== undefined && child !== false) node.append(child);
  }
  return node;
}
const el = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const draw = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

function shown(value, digits = 3) {
  return value === null || value === undefined || Number.isNaN(value) ? "–" : Number(value).toFixed(digits);
}
const percent = (value) => (value === null || value === undefined ? "–" : `${(100 * value).toFixed(1)} %`);
const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);

let lastId = 0;
const freshId = (word) => `cp-${word}-${++lastId}`;

function quoted(text) {
  if (/^[A-Za-z_][A-Za-z_0-9]*$/.test(text) || /^-?\d+(\.\d+)?$/.test(text)) return text;
  return `'${text.replaceAll("'", "''")}'`;
}

function download(name, text, type) {
  const link = el("a", { href: URL.createObjectURL(new Blob([text], { type })), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

function savedSvg(figure) {
  const copy = figure.cloneNode(true);
  const from = [figure, ...figure.querySelectorAll("*")], to = [copy, ...copy.querySelectorAll("*")];
  from.forEach((node, place) => {
    const style = getComputedStyle(node);
    for (const name of ["fill", "stroke", "stroke-width", "stroke-dasharray", "font-size", "opacity"]) {
      to[place].setAttribute(name, style.getPropertyValue(name));
    }
    to[place].removeAttribute("class");
  });
  copy.setAttribute("xmlns", SVG);
  copy.setAttribute("font-family", "sans-serif");
  return new XMLSerializer().serializeToString(copy);
}

// ---------------------------------------------------------------- charts

const WIDE = 340, HIGH = 210, LEFT = 44, RIGHT = 10, TOP = 20, BOTTOM = 34;

function scale(low, high, from, to, log = false) {
  const turn = log ? Math.log10 : (value) => value;
  const span = turn(high) - turn(low) || 1;
  return (value) => from + ((turn(value) - turn(low)) / span) * (to - from);
}

function ticks(low, high, log) {
  if (log) return [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1].filter((one) => one >= low * 0.999 && one <= high * 1.001);
  const rough = (high - low) / 4 || 0.1, unit = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((one) => one * unit).find((one) => one >= rough);
  const found = [];
  for (let at = Math.ceil(low / step - 1e-9) * step; at <= high + 1e-9; at += step) found.push(Number(at.toFixed(10)));
  return found;
}

function frame(label, xs, ys, { log = false, xName = "", yName = "" } = {}) {
  const known = (values) => values.filter((one) => one !== null && one !== undefined);
  let [x0, x1] = [Math.min(...known(xs)), Math.max(...known(xs))];
  if (x1 - x0 < 1e-3) [x0, x1] = [x0 - 0.005, x1 + 0.005];
  let [y0, y1] = [Math.min(...known(ys)), Math.max(...known(ys))];
  if (y1 - y0 < 1e-3) [y0, y1] = [y0 - 0.005, y1 + 0.005];
  const x = scale(x0, x1, LEFT, WIDE - RIGHT, log), y = scale(y0, y1, HIGH - BOTTOM, TOP);
  const figure = draw("svg", { viewBox: `0 0 ${WIDE} ${HIGH}`, role: "img", "aria-label": label });
  for (const at of ticks(y0, y1)) {
    figure.append(draw("line", { class: "grid", x1: LEFT, x2: WIDE - RIGHT, y1: y(at), y2: y(at) }));
    figure.append(draw("text", { x: LEFT - 5, y: y(at) + 4, "text-anchor": "end" }, String(at)));
  }
  for (const at of ticks(x0, x1, log)) {
    figure.append(draw("text", { x: x(at), y: HIGH - BOTTOM + 14, "text-anchor": "middle" }, String(at)));
  }
  figure.append(draw("path", { class: "axis", d: `M${LEFT},${TOP}V${HIGH - BOTTOM}H${WIDE - RIGHT}` }));
  figure.append(draw("text", { x: (LEFT + WIDE - RIGHT) / 2, y: HIGH - 5, "text-anchor": "middle" }, clipped(xName)));
  figure.append(draw("text", { x: 2, y: 11 }, clipped(yName)));
  return { figure, x, y };
}
const clipped = (text) => (text.length > 46 ? `${text.slice(0, 45)}…` : text);

function line(x, y, points, style) {
  const known = points.filter((one) => one[0] !== null && one[1] !== null);
  const path = known.map(([a, b], place) => `${place ? "L" : "M"}${x(a).toFixed(1)},${y(b).toFixed(1)}`).join("");
  return draw("path", { class: `line ${style}`, d: path });
}

function key(entries) {
  return el("p", { class: "muted" }, entries.map(([style, text], place) => [
    place ? "  " : "",
    draw("svg", { viewBox: "0 0 22 8", width: 22, height: 8, class: "swatch", "aria-hidden": "true" },
      draw("path", { class: `line ${style}`, d: "M0,4H22" })),
    ` ${text}`,
  ]));
}

// ---------------------------------------------------------------- the page

class Explorer {
  constructor(root, transport) {
    this.root = root;
    this.transport = transport;
    this.seq = 0; // of the newest setting that was sent
    this.answered = 0; // the newest that was answered, in whichever way
    this.pins = [];
    this.done = [];
    this.undone = [];
    this.axes = { x: "error", y: "tail" };
    this.ranges = new Map();
    this.awaited = new Map();
    this.inputs = new Map(); // when the oldest input came that each setting answers
    this.counter = 0;
    transport.listen((text) => this.hear(JSON.parse(text)), (word) => this.say(word));
  }

  // -------- what comes in

  hear(message) {
    if (message.type === "hello") this.begin(message);
    else if (message.type === "answer") this.take(message);
    else if (message.type === "view") this.show(message);
    else if (message.type === "read" || message.type === "export") this.settle(message);
    else if (message.type === "refused") this.refuse(message);
  }

  begin(hello) {
    const isFirst = !this.hello;
    this.hello = hello;
    this.seq += 1; // what was under way when a connection was lost is answered by nobody
    this.answered = this.seq;
    if (!isFirst) { this.ask(true); return; }
    const kept = this.read(this.transport.readState());
    this.setting = kept?.setting ?? hello.start;
    this.axes = kept?.axes ?? this.axes;
    this.build();
    this.restoring = (kept?.pins ?? []).slice(0, MOST_PINS);
    this.start = JSON.stringify(hello.start);
    this.transport.onState?.((text) => this.arrive(text));
    this.ask(true);
  }

  arrive(text) {
    const kept = this.read(text);
    if (kept && !same(kept.setting, this.setting)) this.move(kept.setting);
  }

  read(text) {
    try {
      const found = text ? JSON.parse(text) : null;
      return found && typeof found.setting === "object" && Array.isArray(found.setting.goals) ? found : null;
    } catch { return null; }
  }

  take(answer) {
    if (answer.seq < this.answered) return; // an old answer never overwrites a newer one
    this.answered = answer.seq;
    if (this.restoring?.length && this.asksForPin) {
      if (answer.kind === "answer") this.addPin(answer);
      this.restoring.shift();
      this.asksForPin = false;
      this.ask(true);
      return;
    }
    if (this.hello.is_file && answer.exact && !this.pending) this.snap(answer.setting);
    if (answer.kind === "answer") {
      this.answer = answer;
      this.conflict = null;
      this.paint();
      if (answer.exact && !this.pending) this.askViews(answer.seq);
    } else {
      this.conflict = answer;
      this.paintConflict();
      if (answer.kind === "unmet" && answer.exact) this.send("conflict", { seq: answer.seq, setting: plain(this.setting) });
    }
    this.drawn(answer.seq);
    this.flush();
  }

  snap(setting) { // a file has no other settings than its own
    this.setting = { ...setting, goals: setting.goals.map((one, place) => ({ ...this.setting.goals[place], ...one })) };
    this.rows.forEach((row, place) => row.slider.write(setting.goals[place].bound));
    this.paintControls();
  }

  show(view) {
    if (view.seq !== this.viewSeq) return;
    if (view.view === "ranges") this.takeRanges(view.ranges || []);
    if (view.view === "verdicts") this.takeVerdicts(view.verdicts || []);
    if (view.view === "curve") this.paintCurve(view);
    if (view.view === "frontier") this.paintFrontier(view);
    if (view.view === "segments") this.paintSegments(view);
    this.mark(view.view, false);
  }

  refuse(message) {
    if (this.awaited.has(message.seq)) { this.settle(message); return; }
    this.answered = Math.max(this.answered, message.seq);
    this.say(message.message);
    this.drawn(message.seq);
    this.flush();
  }

  settle(message) {
    const heard = this.awaited.get(message.seq);
    this.awaited.delete(message.seq);
    if (heard) heard(message);
  }

  // -------- what goes out

  send(type, words) { this.transport.send(JSON.stringify({ type, ...words })); }

  request(type, words) {
    const seq = -(++this.counter); // settings count up, questions count down
    return new Promise((heard) => {
      this.awaited.set(seq, heard);
      this.send(type, { seq, ...words });
    });
  }

  ask(exact) {
    this.pending = { exact: exact || (this.pending?.exact ?? false) };
    this.since ??= performance.now();
    this.stale();
    if (!this.frameAsked) this.frameAsked = requestAnimationFrame(() => this.flush());
  }

  flush() {
    this.frameAsked = 0;
    if (!this.pending) return;
    if (this.seq - this.answered >= 2) return; // the answer to come lets this go on, with whatever is newest then
    const pin = this.restoring?.[0];
    this.asksForPin = Boolean(pin);
    const exact = pin ? true : this.pending.exact;
    if (!pin) this.pending = null;
    this.inputs.set(this.seq + 1, this.since);
    this.since = undefined;
    this.send("set", { seq: ++this.seq, setting: plain(pin ?? this.setting), exact });
  }

  askViews(seq) {
    this.viewSeq = seq;
    for (const view of VIEWS) {
      const words = view === "frontier" ? { x: this.axis("x"), y: this.axis("y") } : {};
      this.send("view", { seq, view, setting: plain(this.setting), ...words });
    }
  }

  axis(name) {
    const word = this.axes[name], place = Number(word);
    if (word === "error" || word === "tail") return word;
    return place < this.setting.goals.length ? place : name === "x" ? "error" : "tail";
  }

  drawn(seq) {
    const done = [...this.inputs].filter(([sent]) => sent <= seq);
    const since = Math.min(...done.map(([, time]) => time).filter((time) => time !== undefined));
    for (const [sent] of done) this.inputs.delete(sent);
    requestAnimationFrame(() => {
      const ms = Number.isFinite(since) ? performance.now() - since : null;
      this.root.dispatchEvent(new CustomEvent("explorer-drawn", { detail: { seq, ms }, bubbles: true }));
    });
  }

  // -------- moving about

  change(changes, exact = false) {
    this.setting = { ...this.setting, ...changes };
    if (exact) this.remember();
    this.ask(exact);
  }

  changeGoal(place, changes, exact = false) {
    const goals = this.setting.goals.map((one, at) => (at === place ? { ...one, ...changes } : one));
    this.change({ goals }, exact);
  }

  remember() {
    const text = JSON.stringify(plain(this.setting));
    if (this.done[this.done.length - 1] !== text) {
      this.done.push(text);
      this.undone = [];
    }
    this.keep();
    this.paintHistory();
  }

  keep() {
    const pins = this.pins.map((pin) => pin.setting);
    this.transport.writeState(JSON.stringify({ setting: plain(this.setting), axes: this.axes, pins }));
  }

  move(setting) {
    this.setting = setting;
    this.keep();
    this.buildGoals();
    this.paintControls();
    this.paintHistory();
    this.ask(true);
  }

  undo() {
    if (this.done.length < 2) return;
    this.undone.push(this.done.pop());
    this.move(JSON.parse(this.done[this.done.length - 1]));
  }

  redo() {
    if (!this.undone.length) return;
    this.done.push(this.undone.pop());
    this.move(JSON.parse(this.done[this.done.length - 1]));
  }

  go(setting) {
    this.setting = setting;
    this.remember();
    this.move(setting);
  }

  addPin(answer) {
    if (!answer || this.pins.length >= MOST_PINS) return;
    this.pins.push({ setting: plain(answer.setting), answer });
    this.keep();
    this.paintPins();
  }

  // -------- the skeleton

  build() {
    const hello = this.hello;
    this.root.replaceChildren();
    this.root.classList.add("cp-explorer");
    this.status = el("p", { role: "status", class: "muted" });
    const rows = hello.datasets[0];
    const about = `${rows.rows.toLocaleString("en")} rows to choose on` +
      (hello.held_out ? `, ${hello.held_out.toLocaleString("en")} held out` : "") +
      `; ${hello.models === 1 ? "one model" : `${hello.models} models`}; positive class ${hello.classes.positive}`;
    this.root.append(el("header", {}, el("h1", {}, hello.title), el("p", { class: "muted" }, about),
      hello.notes.map((note) => el("p", { class: "muted" }, note)), this.status));
    this.alert = el("div", { role: "alert" });
    const controls = el("div", { class: "controls", role: "region", "aria-label": "Settings", tabindex: "0" },
      this.buildHistory(), this.alert, this.buildTail(), hello.is_file ? null : this.buildBudget(),
      hello.is_file || !hello.can_defer ? null : this.buildDeferral(), this.buildBy(),
      el("div", {}, el("h2", {}, "Goals"), this.goalList = el("ul", { class: "goals" })),
      hello.is_file ? el("p", { class: "muted" }, "This file shows the nearest of the settings that were computed beforehand.") : this.buildAdding(),
      this.buildExports());
    this.panels = {};
    const views = el("div", { class: "views" },
      this.panel("summary", "Loss"), this.panel("rates", "Rates by group"), this.panel("scores", "Scores and rules"),
      this.panel("mixture", "Mixture"), this.panel("curve", "Loss of every tail"),
      this.panel("frontier", "Frontier", this.buildAxes()), this.panel("segments", "Who is in the tail"),
      this.panel("pins", "Pinned settings"));
    this.panels.scores.box.hidden = hello.kind !== "rules";
    for (const name of hello.is_file ? ["frontier", "segments"] : []) this.panels[name].box.hidden = true;
    this.root.append(el("main", { class: "columns" }, controls, views));
    this.done = [JSON.stringify(plain(this.setting))];
    this.buildGoals();
    this.paintControls();
    this.paintHistory();
    this.paintPins();
  }

  panel(name, title, more) {
    const heading = freshId(name), body = el("div", { class: "body" });
    const word = el("span", { class: "stale-word" });
    const save = ["summary", "mixture", "segments", "pins"].includes(name) ? null
      : el("button", { type: "button", onclick: () => this.saveFigures(name) }, "SVG", el("span", { class: "hidden" }, ` of ${title}`));
    const box = el("section", { "aria-labelledby": heading },
      el("div", { class: "bar" }, el("h2", { id: heading }, title), word, save), more, body);
    this.panels[name] = { box, body, word };
    return box;
  }

  saveFigures(name) {
    this.panels[name].body.querySelectorAll("svg[role=img]").forEach((figure, place) =>
      download(`${name}${place ? `-${place + 1}` : ""}.svg`, savedSvg(figure), "image/svg+xml"));
  }

  buildHistory() {
    const button = (text, action) => el("button", { type: "button", onclick: action }, text);
    this.buttons = {
      undo: button("Undo", () => this.undo()), redo: button("Redo", () => this.redo()),
      pin: button("Pin", () => this.addPin(this.answer)), reset: button("Start over", () => this.go(JSON.parse(this.start))),
    };
    return el("div", { class: "bar", role: "toolbar", "aria-label": "History" }, Object.values(this.buttons));
  }

  slider(label, { low, high, step, toSlider = (one) => one, fromSlider = (one) => one, describe, change }) {
    const id = freshId("slider"), from = toSlider(low), to = toSlider(high);
    const range = el("input", { type: "range", id, min: from, max: to, step });
    const exact = el("input", { type: "number", min: low, max: high, step: "any", "aria-label": `${label}, as a number` });
    const write = (value) => {
      if (document.activeElement !== exact) exact.value = Number(value.toFixed(4));
      range.value = toSlider(value);
      range.setAttribute("aria-valuetext", describe(value));
    };
    range.addEventListener("input", () => { const value = fromSlider(Number(range.value)); write(value); change(value, false); });
    range.addEventListener("change", () => change(fromSlider(Number(range.value)), true));
    exact.addEventListener("change", () => {
      const value = Number(exact.value);
      if (exact.value !== "" && value >= low && value <= high) { write(value); change(value, true); }
    });
    return { id, range, exact, write };
  }

  buildTail() {
    if (this.hello.start.alpha === null) {
      return el("p", {}, "Made as small as possible: ", el("code", {}, this.hello.objective));
    }
    this.alpha = this.slider("Tail", {
      low: LEAST_ALPHA, high: 1, step: 0.002, toSlider: (one) => Math.log10(Math.max(one, LEAST_ALPHA)),
      fromSlider: (one) => Number(Math.min(10 ** one, 1).toPrecision(4)), describe: (one) => `the worst ${percent(one)} of the rows`,
      change: (alpha, exact) => this.change({ alpha }, exact),
    });
    return el("div", { class: "field" }, el("label", { for: this.alpha.id }, "Tail: the worst fraction that counts"),
      this.alpha.exact, el("div", { class: "wide" }, this.alpha.range));
  }

  buildBudget() {
    const id = freshId("budget");
    this.budgetOn = el("input", { type: "checkbox", id, onchange: () =>
      this.change({ budget: this.budgetOn.checked ? 0.02 : null }, true) });
    this.budget = this.slider("Budget", {
      low: 0, high: 0.5, step: 0.001, describe: (one) => `${percent(one)} above the least average loss`,
      change: (budget, exact) => { if (this.budgetOn.checked) this.change({ budget }, exact); },
    });
    this.budget.range.setAttribute("aria-label", "Budget");
    return el("div", { class: "field" },
      el("label", { for: id, class: "check" }, this.budgetOn, "Budget of average loss"), this.budget.exact,
      el("div", { class: "wide" }, this.budget.range));
  }

  buildDeferral() {
    const id = freshId("defer");
    this.deferOn = el("input", { type: "checkbox", id, onchange: () => this.change({ defer: this.deferOn.checked ? 0.2 : null }, true) });
    this.defer = this.slider("Cost of deferring", {
      low: 0, high: 0.5, step: 0.005, describe: (one) => `a deferred row counts as ${shown(one)} of an error`,
      change: (defer, exact) => { if (this.deferOn.checked) this.change({ defer }, exact); },
    });
    this.defer.range.setAttribute("aria-label", "Cost of deferring");
    return el("div", { class: "field" },
      el("label", { for: id, class: "check" }, this.deferOn, "Rows may be left to a person, at a cost"), this.defer.exact,
      el("div", { class: "wide" }, this.defer.range));
  }

  buildBy() {
    this.byBoxes = this.hello.by.map((name) => {
      const box = el("input", { type: "checkbox", onchange: () => {
        const by = this.byBoxes.filter((one) => one.box.checked).map((one) => one.name);
        this.change({ by: by.slice(0, this.hello.most.by) }, true);
      } });
      return { name, box };
    });
    return this.byBoxes.length ? el("fieldset", {}, el("legend", {}, "Thresholds may differ by"),
      el("div", { class: "bar" }, this.byBoxes.map(({ name, box }) => el("label", { class: "check" }, box, name)))) : null;
  }

  buildExports() {
    const names = { goals: "Goals file", model: "Model file", report: "Report" };
    return el("div", { class: "bar", role: "group", "aria-label": "Export" }, (this.hello.exports || []).map((what) =>
      el("button", { type: "button", onclick: () => this.export(what) }, names[what])));
  }

  async export(what) {
    this.say(what === "goals" ? "" : "Being written.");
    const found = await this.request("export", { what, setting: plain(this.setting) });
    if (found.type === "refused") this.say(found.message);
    else if (found.text !== undefined) download(found.name, found.text, "text/plain");
    else this.say(`Written where the server runs: ${found.path}`);
  }

  buildAxes() {
    const choose = (name, label) => {
      const id = freshId("axis");
      this[`${name}Axis`] = el("select", { id, onchange: (event) => {
        this.axes = { ...this.axes, [name]: event.target.value };
        this.keep();
        if (this.answer?.exact && !this.conflict) {
          this.mark("frontier", true);
          this.send("view", { seq: this.viewSeq, view: "frontier", setting: plain(this.setting), x: this.axis("x"), y: this.axis("y") });
        }
      } });
      return [el("label", { for: id }, label), this[`${name}Axis`]];
    };
    return el("div", { class: "bar" }, choose("y", "Least"), choose("x", "for each bound of"));
  }

  paintAxes() {
    for (const name of ["x", "y"]) {
      const first = name === "x" ? [["error", "error rate"]] : [["tail", this.setting.alpha === null ? "objective" : "tail's loss"], ["error", "error rate"]];
      const goals = this.setting.goals.map((one, place) => [String(place), one.left || one.text]);
      const select = this[`${name}Axis`];
      select.replaceChildren(...[...first, ...goals].map(([value, text]) => el("option", { value }, clipped(text))));
      select.value = String(this.axis(name));
    }
  }

  // -------- goals

  buildGoals() {
    this.rows = this.setting.goals.map((goal, place) => this.goalRow(goal, place));
    this.goalList.replaceChildren(...this.rows.map((row) => row.item));
    if (!this.rows.length) this.goalList.append(el("li", { class: "muted" }, "No goals: add one below."));
    this.paintAxes();
    this.takeRanges([]);
  }

  goalRow(goal, place) {
    const text = goal.left ? `${goal.left} ${goal.sense} ${goal.right}` : goal.text;
    const low = goal.low ?? Math.min(0, goal.bound), high = goal.high ?? Math.max(1, goal.bound);
    const name = el("code", {}, text);
    const slider = this.slider(`Bound of ${text}`, {
      low, high, step: (high - low) / 1000, describe: (one) => shown(one),
      change: (bound, exact) => this.changeGoal(place, { bound }, exact),
    });
    slider.range.setAttribute("aria-label", `Bound of ${text}`);
    slider.write(goal.bound);
    const on = el("input", { type: "checkbox", role: "switch", "aria-label": `Goal ${text} counts`, onchange: () =>
      this.changeGoal(place, { on: on.checked }, true) });
    on.checked = goal.on;
    const track = draw("svg", { class: "track", viewBox: "0 0 100 8", preserveAspectRatio: "none", "aria-hidden": "true" });
    const room = el("span", { class: "hidden" });
    const standing = el("p", {}), held = el("p", {}), asked = this.hello.bounds_asked[goal.text];
    const remove = el("button", { type: "button", "aria-label": `Remove the goal ${text}`, onclick: () => {
      this.change({ goals: this.setting.goals.filter((_, at) => at !== place) }, true);
      this.buildGoals();
    } }, "Remove");
    const item = el("li", { class: goal.on ? "" : "off" },
      el("div", { class: "field" }, el("span", { class: "check" }, on, name), slider.exact),
      slider.range, track, room, standing, held,
      el("div", { class: "bar" }, asked === undefined ? null : el("span", { class: "muted" }, `the goals file asks for ${asked}`), remove));
    return { item, name, slider, on, track, room, standing, held, low, high };
  }

  paintGoals() {
    const told = this.answer.goals;
    if (this.rows.some((row, place) => told[place] && (row.low !== told[place].low || row.high !== told[place].high))) {
      this.setting.goals.forEach((goal, place) => Object.assign(goal, { low: told[place]?.low, high: told[place]?.high }));
      this.buildGoals(); // how far a bound can move is known by now
    }
    this.rows.forEach((row, place) => {
      const one = told[place];
      if (!one) return;
      const goal = this.setting.goals[place];
      Object.assign(goal, { left: one.left, sense: one.sense, right: one.right, low: one.low, high: one.high });
      row.name.textContent = `${one.left} ${one.sense} ${one.right}`;
      row.item.className = one.on ? "" : "off";
      const price = one.on ? (one.price > 1e-6 ? `price ${shown(one.price)}` : "costs nothing") : "off";
      const choice = one.choice.note ?? `${shown(one.choice.value)}${one.choice.worst ? ` (${one.choice.worst})` : ""}`;
      const word = one.choice.note ? "" : one.choice.holds ? "holds" : "missed";
      row.standing.replaceChildren("Where chosen: ", choice, " ", el("span", { class: `verdict ${word === "missed" ? "fails" : word}` }, word), ` · ${price}`);
      this.paintHeld(row, one.held_out);
    });
  }

  paintHeld(row, held) {
    if (!held) { row.held.replaceChildren(); return; }
    if (held.verdict === "not asked") { row.held.replaceChildren(el("span", { class: "muted" }, `Held out: ${held.note}`)); return; }
    row.held.replaceChildren("Held out: ", `${shown(held.estimate)} (${shown(held.low)} to ${shown(held.high)}) `,
      el("span", { class: `verdict ${held.verdict}` }, held.verdict), held.note ? el("span", { class: "muted" }, ` ${held.note}`) : "");
  }

  takeVerdicts(verdicts) {
    verdicts.forEach((held, place) => { if (this.rows[place]) this.paintHeld(this.rows[place], held); });
  }

  takeRanges(ranges) {
    this.rows.forEach((row, place) => {
      const found = ranges.find((one) => one.place === place);
      row.track.replaceChildren();
      row.room.textContent = "";
      if (!found || found.tightest === null) return;
      const x = scale(row.low, row.high, 0, 100), sense = this.setting.goals[place].sense;
      const loose = sense === "<=" ? row.high : row.low, free = found.free ?? found.tightest;
      const part = (from, to, style) => {
        const [a, b] = [x(from), x(to)].sort((one, other) => one - other);
        if (b > a) row.track.append(draw("rect", { class: style, x: Math.max(a, 0), y: 0, width: Math.min(b, 100) - Math.max(a, 0), height: 8 }));
      };
      part(found.tightest, loose, "band");
      const inside = sense === "<=" ? free > found.tightest : free < found.tightest;
      if (inside) part(found.tightest, free, "f1");
      const [toward, away] = sense === "<=" ? ["down", "up"] : ["up", "down"];
      row.room.textContent = `Can be met ${toward} to ${shown(found.tightest)}; costs nothing from ${shown(free)} ${away}.`;
      row.track.parentNode.title = row.room.textContent;
    });
  }

  // -------- adding a goal

  buildAdding() {
    const select = (label, options, change) => {
      const id = freshId("pick");
      const box = el("select", { id, onchange: change }, options.map(([value, text]) => el("option", { value }, text)));
      return { box, field: el("div", {}, el("label", { for: id }, label), " ", box) };
    };
    const data = this.hello.datasets, suits = (metric) => metric.needs.split(", ").every((need) => need !== "baseline" || data.some((one) => one.baseline));
    const metric = select("Metric", this.hello.metrics.filter(suits).map((one) => [one.name, one.name]), () => compose());
    const dataset = select("Rows", data.map((one) => [one.name, one.name]), () => { groups(); compose(); });
    const column = select("Group", [], () => { values(); compose(); });
    const value = select("Value", [], () => compose());
    const classes = select("Class", [["", `positive (${this.hello.classes.positive})`], [this.hello.classes.negative, this.hello.classes.negative]], () => compose());
    const sense = select("Is", [[">=", "at least"], ["<=", "at most"]], () => compose());
    const groups = () => {
      const known = Object.keys(data.find((one) => one.name === dataset.box.value).columns);
      column.box.replaceChildren(el("option", { value: "" }, "all rows"), ...known.map((name) => el("option", { value: name }, name)));
      values();
    };
    const values = () => {
      const known = data.find((one) => one.name === dataset.box.value).columns[column.box.value] || [];
      value.box.replaceChildren(...known.map((name) => el("option", { value: name }, name)));
      value.field.hidden = !known.length;
    };
    const compose = () => {
      const group = column.box.value ? `, ${quoted(column.box.value)}=${quoted(value.box.value)}` : "";
      const of = classes.box.value ? `, of=${quoted(classes.box.value)}` : "";
      input.value = `${metric.box.value}(${quoted(dataset.box.value)}${group}${of}) ${sense.box.value} 0.5`;
      complete();
    };
    const list = el("datalist", { id: freshId("words") }), problem = el("pre", { class: "error", "aria-live": "polite" });
    const id = freshId("goal");
    const input = el("input", { type: "text", id, list: list.id, autocomplete: "off", spellcheck: "false", oninput: () => complete() });
    const names = [...this.hello.words, ...data.map((one) => one.name), ...new Set(data.flatMap((one) => Object.keys(one.columns)))];
    const complete = () => {
      const start = /[A-Za-z_0-9]*$/.exec(input.value)[0];
      const found = start ? names.filter((name) => name.startsWith(start) && name !== start).slice(0, 12) : [];
      const before = input.value.slice(0, input.value.length - start.length);
      list.replaceChildren(...found.map((name) => el("option", { value: before + quoted(name) })));
    };
    const add = async (event) => {
      event.preventDefault();
      const read = await this.request("read", { text: input.value });
      problem.textContent = read.type === "refused" ? read.message : "";
      if (read.type === "refused") { input.setAttribute("aria-invalid", "true"); return; }
      input.removeAttribute("aria-invalid");
      this.change({ goals: [...this.setting.goals, read.goal] }, true);
      this.buildGoals();
      this.say(`Added: ${read.goal.text}`);
    };
    groups();
    compose();
    return el("details", {}, el("summary", {}, "Add a goal"),
      el("form", { onsubmit: add }, el("div", { class: "bar" }, [metric, dataset, column, value, classes, sense].map((one) => one.field)),
        el("label", { for: id }, "Goal as text"), input, list, problem, el("button", { class: "main" }, "Add")));
  }

  // -------- drawing

  stale() {
    for (const name of ["curve", "frontier", "segments"]) this.mark(name, true);
  }

  mark(name, isStale) {
    const panel = this.panels?.[name];
    if (!panel) return;
    panel.body.classList.toggle("stale", isStale);
    panel.body.setAttribute("aria-busy", String(isStale));
    panel.word.textContent = isStale ? "being computed" : "";
  }

  say(text) { if (this.status) this.status.textContent = text; else this.root.querySelector("[role=status]")?.replaceChildren(text); }

  paintHistory() {
    this.buttons.undo.disabled = this.done.length < 2;
    this.buttons.redo.disabled = !this.undone.length;
    this.buttons.pin.disabled = this.pins.length >= MOST_PINS;
  }

  paintControls() {
    if (this.alpha) this.alpha.write(this.setting.alpha ?? 1);
    for (const { name, box } of this.byBoxes) box.checked = this.setting.by.includes(name);
    if (this.deferOn) {
      this.deferOn.checked = this.setting.defer !== null && this.setting.defer !== undefined;
      this.defer.write(this.setting.defer ?? 0.2);
      this.defer.range.disabled = this.defer.exact.disabled = !this.deferOn.checked;
    }
    if (!this.budgetOn) return;
    this.budgetOn.checked = this.setting.budget !== null && this.setting.budget !== undefined;
    this.budget.write(this.setting.budget ?? 0.02);
    this.budget.range.disabled = this.budget.exact.disabled = !this.budgetOn.checked;
  }

  paint() {
    this.alert.replaceChildren();
    this.alert.className = "";
    this.paintGoals();
    this.paintControls();
    this.paintSummary();
    this.paintRates();
    this.paintScores();
    this.paintMixture();
    this.paintPins();
    this.paintHistory();
    for (const name of ["summary", "rates", "scores", "mixture"]) this.mark(name, false);
    const { value, lower } = this.answer;
    this.say(`${this.answer.objective}: ${shown(value)}, at most ${shown(Math.max(value - lower, 0), 4)} above the best possible`);
  }

  paintConflict() {
    const { kind, message, ways } = this.conflict;
    this.alert.className = "alert";
    for (const name of ["summary", "rates", "scores", "mixture"]) this.panels[name].body.classList.add("stale");
    if (kind === "unmet") {
      this.alert.replaceChildren(el("p", {}, "These goals cannot be met together. Which of them conflict is being found out."));
      return;
    }
    this.alert.replaceChildren(el("p", {}, message), el("div", { class: "bar" }, (ways || []).map((way) =>
      el("button", { type: "button", class: "main", onclick: () => this.accept(way) }, `Use ${way.map((one) => one.instead).join(" and ")}`))));
    this.say("The goals cannot be met together.");
  }

  accept(way) {
    const told = this.conflict.setting.goals;
    const goals = this.setting.goals.map((goal, place) => {
      const found = way.find((one) => one.goal === told[place]?.text);
      return found ? { ...goal, bound: found.bound } : goal;
    });
    this.change({ goals }, true);
    this.buildGoals();
  }

  paintSummary() {
    const { losses } = this.answer, rows = Object.entries(losses);
    const names = { choice: "where chosen", held_out: "held out" };
    const head = ["", "average", ...(this.setting.alpha === null ? [] : ["tail"]), "plain, average", ...(this.setting.alpha === null ? [] : ["plain, tail"])];
    const cells = (one) => [one.mean, ...("tail" in one ? [one.tail] : []), one.plain_mean, ...("plain_tail" in one ? [one.plain_tail] : [])];
    this.panels.summary.body.replaceChildren(el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Loss, as a table" }, el("table", {},
      el("thead", {}, el("tr", {}, head.map((text) => el("th", { scope: "col" }, text)))),
      el("tbody", {}, rows.map(([name, one]) => el("tr", {}, el("th", { scope: "row" }, names[name]), cells(one).map((value) => el("td", {}, shown(value)))))))),
      el("p", { class: "muted" }, `Plain is the first model by itself, at its usual threshold. ${this.answer.note || ""}`));
  }

  paintRates() {
    const { groups, rows } = this.answer.rates, names = groups.length ? Object.keys(groups[0].rates) : [];
    const figures = names.map((name) => this.rateFigure(name, groups));
    const table = el("details", {}, el("summary", {}, "As a table"), el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Rates by group as a table" }, el("table", {},
      el("thead", {}, el("tr", {}, ["group", "rows", ...names].map((text) => el("th", { scope: "col" }, text)))),
      el("tbody", {}, groups.map((one) => el("tr", {}, el("th", { scope: "row" }, one.group), el("td", {}, one.rows),
        names.map((name) => el("td", {}, one.rates[name] ? shown(one.rates[name][0]) : "–"))))))));
    const open = this.panels.rates.body.querySelector("details")?.open;
    if (open) table.open = true;
    this.panels.rates.body.replaceChildren(...figures, el("p", { class: "muted" },
      rows === "held_out" ? "Of decisions about held-out rows; intervals of 95 %." : "In expectation, on the rows of choice."), table);
  }

  rateFigure(name, groups) {
    const high = 18 * groups.length + 26, x = scale(0, 1, 120, WIDE - 34);
    const spoken = groups.map((one) => `${one.group} ${one.rates[name] ? shown(one.rates[name][0]) : "none"}`).join(", ");
    const figure = draw("svg", { viewBox: `0 0 ${WIDE} ${high}`, role: "img", "aria-label": `${name}: ${spoken}` },
      draw("text", { x: 0, y: 12 }, name));
    groups.forEach((one, place) => {
      const y = 28 + 18 * place, rate = one.rates[name];
      const values = one.group.replaceAll(/(^|, )[^=,]+=/g, "$1"); // the columns are named in the table
      figure.append(draw("text", { x: 116, y: y + 4, "text-anchor": "end" }, draw("title", {}, one.group), values.length > 18 ? `${values.slice(0, 17)}…` : values));
      figure.append(draw("line", { class: "grid", x1: x(0), x2: x(1), y1: y, y2: y }));
      if (!rate) return;
      if (rate[1] !== null) figure.append(draw("line", { class: "ink", x1: x(rate[1]), x2: x(rate[2]), y1: y, y2: y }));
      figure.append(draw("circle", { class: "f1", cx: x(rate[0]), cy: y, r: 4 }));
      figure.append(draw("text", { x: WIDE - 30, y: y + 4 }, shown(rate[0])));
    });
    return figure;
  }

  paintScores() {
    const { groups, model } = this.answer.panels, body = this.panels.scores.body;
    if (!groups.length) { body.replaceChildren(); return; }
    const known = this.answer.groups;
    const members = this.answer.members.filter((one) => one.thresholds);
    const figures = groups.map((one) => {
      const at = known.length > 1 ? known.indexOf(one.group) : 0;
      return this.scoreFigure(one, members.flatMap((member) =>
        [member.thresholds, member.lower || []].map((cuts) => [cuts[at], member.share])));
    });
    body.replaceChildren(key([["s1", "positive"], ["s2 dashed", "negative"]]), ...figures,
      el("p", { class: "muted" }, this.hello.models > 1 ? `Scores of model ${model + 1} of ${this.hello.models}.` : "Upright lines are thresholds, thicker where drawn more often."));
  }

  scoreFigure(one, rules) {
    const high = 90, bins = one.positive.length, x = scale(one.low, one.high, 10, WIDE - 10);
    const most = Math.max(1, ...one.positive, ...one.negative), y = scale(0, most, high - 18, 16);
    const steps = (counts) => counts.map((count, place) => {
      const [a, b] = [place, place + 1].map((at) => x(one.low + ((one.high - one.low) * at) / bins).toFixed(1));
      return `${place ? "L" : "M"}${a},${y(count).toFixed(1)}H${b}`;
    }).join("");
    const cuts = rules.filter(([cut]) => typeof cut === "number");
    const figure = draw("svg", { viewBox: `0 0 ${WIDE} ${high}`, role: "img", "aria-label":
      `Scores of ${one.group}; thresholds ${cuts.map(([cut, share]) => `${shown(cut)} with ${percent(share)}`).join(", ") || "beyond all scores"}` },
      draw("text", { x: 10, y: 12 }, one.group),
      draw("path", { class: "line s1", d: steps(one.positive) }), draw("path", { class: "line s2 dashed", d: steps(one.negative) }),
      draw("path", { class: "axis", d: `M10,${high - 18}H${WIDE - 10}` }),
      draw("text", { x: 10, y: high - 5 }, shown(one.low, 2)), draw("text", { x: WIDE - 10, y: high - 5, "text-anchor": "end" }, shown(one.high, 2)));
    for (const [cut, share] of cuts) {
      const line_ = draw("line", { class: "ink", x1: x(cut), x2: x(cut), y1: 16, y2: high - 18 });
      line_.style.strokeWidth = `${1 + 3 * share}px`;
      figure.append(line_);
    }
    return figure;
  }

  paintMixture() {
    const { members, groups } = this.answer, isRules = members.some((one) => one.thresholds);
    const head = ["model", "share", ...(isRules ? groups : [])];
    const cut = (value) => (typeof value === "number" ? shown(value) : value);
    this.panels.mixture.body.replaceChildren(el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Mixture, as a table" }, el("table", {},
      el("thead", {}, el("tr", {}, head.map((text) => el("th", { scope: "col" }, text)))),
      el("tbody", {}, members.map((one) => el("tr", {}, el("th", { scope: "row" }, one.model), el("td", {}, percent(one.share)),
        (one.thresholds || []).map((value, at) => el("td", {}, one.lower ? `${cut(one.lower[at])} to ${cut(value)}` : cut(value)))))))),
      el("p", { class: "muted" }, isRules ? `Each rule says the positive class above its threshold of the group.${members.some((one) => one.lower) ? " From the lower to the upper one a person decides." : ""}` : "The share is how often a model decides."));
  }

  paintCurve(view) {
    const body = this.panels.curve.body;
    if (view.unmet) { body.replaceChildren(el("p", {}, "No mixture meets the goals.")); return; }
    const pair = (name) => view.alphas.map((alpha, place) => [alpha, view[name][place]]);
    const best = view.best || [];
    const all = [...view.mixture, ...view.plain, ...best.map((one) => one[1])];
    const { figure, x, y } = frame("Loss of the worst fraction, for every fraction", view.alphas, all, { log: true, xName: "tail fraction alpha", yName: "loss" });
    figure.append(line(x, y, pair("plain"), "s2 dashed"), line(x, y, pair("mixture"), "s1"));
    best.filter((one) => one[1] !== null).forEach(([a, b]) => figure.append(draw("circle", { class: "f3", cx: x(a), cy: y(b), r: 3 })));
    if (this.setting.alpha !== null) {
      figure.append(draw("line", { class: "ink", x1: x(Math.max(this.setting.alpha, LEAST_ALPHA)), x2: x(Math.max(this.setting.alpha, LEAST_ALPHA)), y1: TOP, y2: HIGH - BOTTOM }));
    }
    body.replaceChildren(figure, key([["s1", "this mixture"], ["s2 dashed", "plain training"]]),
      el("p", { class: "muted" }, `Dots: the mixture chosen anew for that tail. ${view.rows === "held_out" ? "Held-out rows." : "Rows of choice."}`));
  }

  paintFrontier(view) {
    const body = this.panels.frontier.body, points = view.points || [];
    if (view.unmet || !points.length) { body.replaceChildren(el("p", {}, "No mixture meets the other goals.")); return; }
    const here = view.here || [null, null];
    const { figure, x, y } = frame(`Least ${view.y} for each bound of ${view.x}`, [...points.map((one) => one[0]), here[0]], [...points.map((one) => one[1]), here[1]], {
      xName: view.x === "error_rate(train)" ? "error rate" : view.x, yName: view.y === "tail" ? "tail's loss" : view.y });
    figure.append(line(x, y, points, "s1"));
    if (here[0] !== null && here[1] !== null) figure.append(draw("circle", { class: "mark", cx: x(here[0]), cy: y(here[1]), r: 4.5 }));
    body.replaceChildren(figure, el("p", { class: "muted" }, "The dot is the present setting; all other goals are kept."));
  }

  paintSegments(view) {
    const body = this.panels.segments.body, found = view.segments || [];
    if (!found.length) { body.replaceChildren(el("p", { class: "muted" }, `Not shown: ${view.why || "no mixture meets the goals"}.`)); return; }
    body.replaceChildren(el("ul", {}, found.map((one) => el("li", {}, `${one.text}: ${shown(one.lift, 1)} times as often in the tail as others, ${percent(one.part)} of it (${one.rows.toLocaleString("en")} rows)`))));
  }

  paintPins() {
    const body = this.panels.pins.body;
    this.panels.pins.box.hidden = !this.pins.length;
    if (!this.pins.length || !this.answer) return;
    const all = [{ name: "now", answer: this.answer }, ...this.pins.map((pin, place) => ({ name: `pin ${place + 1}`, ...pin }))];
    const rows = "held_out" in this.answer.losses ? "held_out" : "choice";
    const lefts = [...new Set(all.flatMap((one) => one.answer.goals.map((goal) => `${goal.left} ${goal.sense}`)))];
    const lines = [
      ["tail", (one) => shown(one.answer.setting.alpha)], ["budget", (one) => shown(one.answer.setting.budget)],
      ["objective", (one) => shown(one.answer.value)],
      ["average loss", (one) => shown(one.answer.losses[rows].mean)],
      ...(this.setting.alpha === null ? [] : [["tail's loss", (one) => shown(one.answer.losses[rows].tail)]]),
      ...lefts.map((left) => [left, (one) => {
        const goal = one.answer.goals.find((other) => `${other.left} ${other.sense}` === left && other.on);
        return goal ? `${shown(goal.bound)}: ${shown(goal.held_out?.estimate ?? goal.choice.value)}` : "–";
      }]),
    ];
    body.replaceChildren(el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Pinned settings, as a table" }, el("table", {},
      el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "setting"), all.map((one) => el("th", { scope: "col" }, one.name)))),
      el("tbody", {}, lines.map(([name, cell]) => el("tr", {}, el("th", { scope: "row" }, name), all.map((one) => el("td", {}, cell(one))))),
        el("tr", {}, el("th", { scope: "row" }, "actions"), all.map((one, place) => el("td", {}, place ? [
          el("button", { type: "button", "aria-label": `Go to ${one.name}`, onclick: () => this.go(structuredClone(one.setting)) }, "Go"), " ",
          el("button", { type: "button", "aria-label": `Remove ${one.name}`, onclick: () => { this.pins.splice(place - 1, 1); this.keep(); this.paintPins(); this.paintHistory(); } }, "Remove")] : ""))))),
    ), el("p", { class: "muted" }, `Of goals: bound, then the value ${rows === "held_out" ? "on held-out rows" : "where chosen"}.`));
  }
}

function plain(setting) {
  return { ...setting, goals: setting.goals.map(({ text, bound, on }) => ({ text, bound, on })) };
}

// ---------------------------------------------------------------- ways to talk

class SocketTransport {
  constructor(place) {
    this.place = new URL(place, location.href);
    this.place.protocol = location.protocol === "https:" ? "wss:" : "ws:";
    this.place.hash = "";
    this.waits = 300;
  }

  listen(hear, say) {
    this.hear = hear;
    this.say = say;
    this.open();
    addEventListener("hashchange", () => { if (location.hash !== this.written) this.arrived?.(this.readState()); });
  }

  open() {
    this.socket = new WebSocket(this.place);
    this.socket.addEventListener("message", (event) => { this.waits = 300; this.hear(event.data); });
    this.socket.addEventListener("close", (event) => {
      this.say(event.reason || "The server does not answer. Is counterpoise explore still running? Trying again.");
      setTimeout(() => this.open(), this.waits);
      this.waits = Math.min(2 * this.waits, 5000);
    });
  }

  send(text) { if (this.socket.readyState === WebSocket.OPEN) this.socket.send(text); }
  onState(arrived) { this.arrived = arrived; }

  readState() {
    try { return decodeURIComponent(location.hash.slice(1)); } catch { return ""; }
  }

  writeState(text) {
    history.replaceState(null, "", `#${encodeURIComponent(text)}`);
    this.written = location.hash;
  }
}

class WidgetTransport {
  constructor(model) { this.model = model; }

  listen(hear) {
    this.model.on("msg:custom", (content) => hear(content.text));
    this.model.send({ text: "hello" });
  }

  send(text) { this.model.send({ text }); }
  readState() { return this.model.get("state"); }
  writeState(text) { this.model.set("state", text); this.model.save_changes(); }
  onState(arrived) { this.model.on("change:state", () => arrived(this.model.get("state"))); }
}

// A file without a server: answers for a grid of settings were computed before, the nearest of them is shown.
class StaticTransport {
  constructor(kept) { this.kept = kept; }

  listen(hear) {
    this.hear = hear;
    setTimeout(() => hear(JSON.stringify(this.kept.hello)));
  }

  send(text) {
    const message = JSON.parse(text), { seq, type } = message;
    const reply = (words) => setTimeout(() => this.hear(JSON.stringify({ seq, ...words })));
    if (type === "set") reply({ type: "answer", exact: message.exact, ...this.nearest(message.setting) });
    else if (type === "conflict") reply({ type: "answer", exact: true, ...this.nearest(message.setting) });
    else if (type === "view") reply(this.view(message));
    else reply({ type: "refused", message: "This is a file: adding goals and exports need counterpoise explore." });
  }

  nearest(setting) {
    const apart = (one) => {
      const goals = one.setting.goals.map((goal, place) => {
        const asked = setting.goals[place];
        return asked ? (asked.on === goal.on ? 0 : 100) + 4 * Math.abs(asked.bound - goal.bound) : 100;
      });
      const tail = setting.alpha === null ? 0 : Math.abs(Math.log(setting.alpha) - Math.log(one.setting.alpha));
      return tail + goals.reduce((sum, part) => sum + part, 0);
    };
    return this.kept.answers.reduce((best, one) => (apart(one) < apart(best) ? one : best));
  }

  view({ view, setting }) {
    const found = this.nearest(setting).views?.[view];
    return found ? { type: "view", view, ...found } : { type: "view", view, unmet: false, segments: [], points: [], why: "this is a file" };
  }

  readState() { try { return decodeURIComponent(location.hash.slice(1)); } catch { return ""; } }
  writeState(text) { try { history.replaceState(null, "", `#${encodeURIComponent(text)}`); } catch { /* some browsers refuse it for files */ } }
}

export function mount(root, transport) { return new Explorer(root, transport); }

export default {
  render({ model, el: root }) {
    const box = el("div", { class: "cp-explorer" }, el("p", { role: "status" }, "Connecting to the models."));
    root.append(box);
    mount(box, new WidgetTransport(model));
  },
};

const page = globalThis.document?.querySelector(".cp-explorer[data-socket], .cp-explorer[data-static]");
if (page) {
  const kept = page.dataset.static ? JSON.parse(document.getElementById(page.dataset.static).textContent) : null;
  mount(page, kept ? new StaticTransport(kept) : new SocketTransport(page.dataset.socket));
}

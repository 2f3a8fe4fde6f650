// The page of the explorer: plain DOM and SVG. Everything that the server sends becomes text on the page, never markup.

const SVG = "http://www.w3.org/2000/svg";
const MOST_PINS = 3;
const AT_ONCE = ["people", "summary", "rates", "scores", "mixture"], LATER = ["curve", "frontier", "segments"]; // panels
const COMPUTED = "being computed", OUTDATED = "from the last setting that could be met", LAST = "the last rule, until one is found for this setting";
const LEAST_ALPHA = 0.01, USUAL_CONFIDENCE = 0.9;

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
const fewDigits = (value) => Number(Math.abs(value) < 1 ? value.toPrecision(4) : value.toFixed(4));
// a text with few digits of its numbers: a goal keeps all of them, and values in quotes are names
const rounded = (text) => text.replace(/'(?:[^']|'')*'|\d+\.\d{5,}/g, (part) => (part[0] === "'" ? part : String(fewDigits(Number(part)))));
function goalWords({ text, left, sign, right, bound }) {
  if (!left) { // of a link or of a step back: the text may have another bound
    const [, sides] = /^(.*(?:[<>]=?|\+-)\s*)-?[\d.]+(?:e[-+]?\d+)?$/i.exec(text) ?? [];
    return sides && typeof bound === "number" ? rounded(sides) + fewDigits(bound) : rounded(text);
  }
  return `${left} ${sign} ${Number.isNaN(Number(right)) ? rounded(right) : fewDigits(bound)}`;
}
const whole = (value) => (value === null || value === undefined ? null : Math.round(1000 * value)); // of 1,000 people
const count = (value) => value.toLocaleString("en");
const percent = (value) => (value === null || value === undefined ? "–" : `${(100 * value).toFixed(1)}\u00a0%`);
const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);

function nearestPlace(values, wanted) {
  return values.reduce((best, one, place) => (Math.abs(one - wanted) < Math.abs(values[best] - wanted) ? place : best), 0);
}

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
  const places = [];
  // parts of a step: sums of steps are not exact
  for (let at = Math.ceil(low / step - 1e-9) * step; at <= high + 1e-9 * step; at += step) places.push(Number((Math.round(at / step) * step).toPrecision(12)));
  return places;
}

function frame(label, xs, ys, { log = false, xName = "", yName = "" } = {}) {
  const known = (values) => values.filter((one) => one !== null && one !== undefined);
  const ends = (values) => {
    const [least, most] = [Math.min(...known(values)), Math.max(...known(values))], size = Math.max(Math.abs(least), Math.abs(most)) || 1;
    // values that differ by less than a pixel of their size would make a figure of noise
    return most - least < 1e-3 * size ? [least - 0.005 * size, most + 0.005 * size] : [least, most];
  };
  const [[x0, x1], [y0, y1]] = [ends(xs), ends(ys)];
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
const clipped = (text, most = 46) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);
const valuesOf = (group) => group.replaceAll(/(^|, )[^=,]+=/g, "$1"); // of a group, without the names of its columns

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

function table(label, head, rows) {
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label }, el("table", {},
    el("thead", {}, el("tr", {}, head.map((one) => [one].flat()).map(([text, style]) => el("th", { scope: "col", class: style }, text)))), el("tbody", {}, rows)));
}

// ---------------------------------------------------------------- the setting in a link

class UnreadableLink extends Error {}

function must(holds, what, got) {
  if (!holds) throw new UnreadableLink(`${what}; got ${clipped(JSON.stringify(got) ?? "nothing")}`);
}
const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
const isNumber = (value, low, high) => typeof value === "number" && value >= low && value <= high;

function readGoal(goal) {
  must(isObject(goal) && typeof goal.text === "string", "each goal must be an object with a text", goal);
  const { text, bound, on = true } = goal;
  must(bound === undefined || isNumber(bound, -Infinity, Infinity), "the bound of a goal must be a number", bound);
  must(typeof on === "boolean", "on must be true or false", on);
  return { text, bound, on };
}

function readSetting(setting, hello) {
  must(isObject(setting), "a setting must be an object", setting);
  const { alpha = null, budget = null, goals = [], by = [], defer = null, confidence = null } = setting;
  if (hello.start.alpha === null) must(alpha === null, "this model does not minimise the loss of a tail, so alpha must be null", alpha);
  else must(isNumber(alpha, Number.MIN_VALUE, 1), "alpha must be above 0 and at most 1", alpha);
  for (const [name, value] of Object.entries({ budget, defer })) must(value === null || isNumber(value, 0, 1), `${name} must be from 0 to 1, or null`, value);
  must(defer === null || hello.can_defer, "this model decides about every row, so defer must be null", defer);
  must(Array.isArray(by) && by.length <= hello.most.by && by.every((one) => hello.by.includes(one) || hello.start.by.includes(one)),
    `by must list at most ${hello.most.by} of ${hello.by.join(", ") || "no columns"}`, by);
  must(Array.isArray(goals) && goals.length <= hello.most.goals, `goals must be a list of at most ${hello.most.goals}`, Array.isArray(goals) ? goals.length : goals);
  must(confidence === null || isNumber(confidence, Number.MIN_VALUE, 1 - Number.EPSILON), "confidence must be between 0 and 1, or null", confidence);
  must(confidence === null || !hello.why_no_margins, `confidence must be null: ${hello.why_no_margins}`, confidence);
  return { alpha, budget, goals: goals.map(readGoal), by, defer, confidence };
}

// Returns the parts of a link that can be read, and a sentence for each problem.
function readState(transport, hello) {
  const problems = [];
  const attempt = (read, otherwise, instead) => {
    try { return read(); } catch (error) {
      problems.push(`${instead} ${error instanceof UnreadableLink ? error.message : "it is not JSON"}.`);
      return otherwise;
    }
  };
  const value = attempt(() => JSON.parse(transport.readState() || "{}"), {}, "The address after # cannot be read:");
  const state = isObject(value) ? value : {};
  if (state !== value) problems.push("The address after # holds no setting.");
  const { setting, axes = {}, pins = [], ...others } = state;
  if (Object.keys(others).length) problems.push(`The address after # has the parts setting, axes and pins; got ${clipped(Object.keys(others).join(", "))}.`);
  return {
    problems,
    setting: setting === undefined ? null
      : attempt(() => readSetting(setting, hello), null, "The setting in the address cannot be read:"),
    axes: attempt(() => {
      must(isObject(axes) && Object.values(axes).every((one) => typeof one === "string"), "axes must be an object of texts", axes);
      return axes;
    }, {}, "The axes in the address cannot be read:"),
    pins: attempt(() => {
      must(Array.isArray(pins) && pins.length <= MOST_PINS, `pins must be a list of at most ${MOST_PINS}`, pins);
      return pins.map((one) => readSetting(one, hello));
    }, [], "The pinned settings in the address cannot be read:"),
  };
}

// ---------------------------------------------------------------- the page

class Explorer {
  constructor(root, transport) {
    this.root = root;
    this.transport = transport;
    this.seq = 0; // of the newest setting that was sent
    this.answered = 0; // the newest that was answered or refused
    this.pins = [];
    this.undoStack = [];
    this.redoStack = [];
    this.axes = {}; // of the frontier, where someone chose them
    this.ranges = new Map();
    this.requests = new Map();
    this.inputs = new Map(); // when the oldest input came that each setting answers
    this.counter = 0;
    transport.listen((text) => this.receive(JSON.parse(text)), (word) => this.say(word));
  }

  // -------- what comes in

  receive(message) {
    if (message.type === "hello") this.begin(message);
    else if (message.type === "answer") this.take(message);
    else if (message.type === "view") this.show(message);
    else if (message.type === "read" || message.type === "export") this.resolveRequest(message);
    else if (message.type === "refused") this.refuse(message);
  }

  begin(hello) {
    const isFirst = !this.hello;
    this.hello = hello;
    this.seq += 1; // requests under way when a connection was lost get no reply
    this.answered = this.seq;
    if (!isFirst) { this.requestAnswer(true); return; }
    this.start = JSON.stringify(hello.start);
    const { setting, axes, pins, problems } = this.readLink();
    this.setting = setting ?? JSON.parse(this.start);
    this.axes = axes;
    this.restoring = this.isStart(this.setting) ? pins : [JSON.parse(this.start), ...pins]; // what the page compares with
    this.build();
    this.showProblems(problems, setting ? "" : "The page shows the model's own setting.");
    this.transport.onState?.(() => this.arrive());
    this.requestAnswer(true);
  }

  readLink() { // the setting in the address; a file has only some of them
    const state = readState(this.transport, this.hello);
    if (!state.setting || !this.transport.grid) return state;
    const setting = this.transport.grid.own(state.setting);
    return setting ? { ...state, setting } : { ...state, setting, problems: [...state.problems, "This file has no result for the setting in the address."] };
  }

  isStart(setting) { return same(plain(setting), plain(JSON.parse(this.start))); }

  arrive() {
    const { setting, problems } = this.readLink();
    if (setting && !same(plain(setting), plain(this.setting))) this.move(setting);
    this.showProblems(problems, "The page keeps the setting that it had.");
  }

  get leastAlpha() { return Math.max(LEAST_ALPHA, this.hello.least_alpha); }

  showProblems(problems, instead = "") { this.notice.textContent = problems.length ? `${problems.join(" ")} ${instead}`.trim() : ""; }

  take(answer) {
    if (answer.seq < this.answered) return; // an old answer never overwrites a newer one
    this.answered = answer.seq;
    if (answer.kind === "answer" && !answer.is_last && this.isStart(answer.setting)) this.fitted = answer;
    if (!this.isRestoringPin) this.isLinkAccepted = true;
    if (this.isRestoringPin) { this.restored(answer.kind === "answer" ? answer : null); return; }
    if (answer.setting.goals.length === this.setting.goals.length) { // a link may leave the bound to the text of a goal
      this.setting.goals.forEach((goal, place) => { goal.bound ??= answer.setting.goals[place].bound; });
    }
    if (answer.kind === "answer") {
      this.answer = answer;
      this.conflict = null;
      this.paint();
      if (answer.exact && !this.pending) this.requestViews(answer.seq);
    } else {
      this.conflict = answer;
      this.paintConflict();
      if (answer.kind === "unmet" && answer.exact) this.send("conflict", { seq: answer.seq, setting: plain(this.setting) });
    }
    this.drawn(answer.seq);
    this.flush();
  }

  restored(answer) { // a pinned setting of a link has its result, or null where it has none
    if (this.isStart(this.restoring[0]) && answer) this.fitted = answer;
    else if (answer) this.addPin(answer);
    else this.showProblems(["A pinned setting in the address has no result, so the page leaves it out."]);
    this.restoring.shift();
    this.isRestoringPin = false;
    this.requestAnswer(true);
  }

  show(view) {
    if (view.seq !== this.viewSeq) return;
    if (view.view === "ranges") { this.takeRanges(view.ranges || []); this.goalList.setAttribute("aria-busy", "false"); } // the last of the goals
    if (view.view === "verdicts") this.takeVerdicts(view.verdicts || []);
    if (view.view === "curve") this.paintCurve(view);
    if (view.view === "frontier") this.paintFrontier(view);
    if (view.view === "segments") this.paintSegments(view);
    this.note(view.view, "");
  }

  refuse(message) {
    if (this.requests.has(message.seq)) { this.resolveRequest(message); return; }
    if (message.seq <= this.answered) { this.refuseView(message); return; }
    this.answered = message.seq;
    if (this.isRestoringPin) { this.restored(null); return; }
    if (!this.isLinkAccepted && !this.isStart(this.setting)) { // a link whose setting is refused
      this.showProblems([`The setting in the address was refused: ${message.message}`], "The page shows the model's own setting.");
      this.move(JSON.parse(this.start));
    } else {
      this.conflict = { kind: "refused", message: message.message, ways: [] };
      this.paintConflict();
    }
    this.drawn(message.seq);
    this.flush();
  }

  refuseView(message) { // the setting itself was answered
    this.say(message.message);
    this.goalList.setAttribute("aria-busy", "false");
    if (this.conflict?.kind === "unmet") this.conflict = { ...this.conflict, kind: "refused", message: message.message };
    if (this.conflict) this.paintConflict();
    else for (const name of LATER) if (this.panels?.[name]?.isLoading) this.note(name, "not computed");
  }

  resolveRequest(message) {
    const resolve = this.requests.get(message.seq);
    this.requests.delete(message.seq);
    if (resolve) resolve(message);
  }

  // -------- what goes out

  send(type, words) { this.transport.send(JSON.stringify({ type, ...words })); }

  request(type, words) {
    const seq = -(++this.counter); // settings count up, questions count down
    return new Promise((resolve) => {
      this.requests.set(seq, resolve);
      this.send(type, { seq, ...words });
    });
  }

  requestAnswer(exact) {
    this.pending = { exact: exact || (this.pending?.exact ?? false) };
    this.since ??= performance.now();
    this.stale();
    if (!this.frameRequest) this.frameRequest = requestAnimationFrame(() => this.flush());
  }

  flush() {
    this.frameRequest = 0;
    if (!this.pending) return;
    if (this.seq - this.answered >= 2) return; // the answer to come lets this go on, with whatever is newest then
    const pin = this.restoring?.[0];
    this.isRestoringPin = Boolean(pin);
    const setting = plain(pin ?? this.setting), keepsMargins = setting.confidence !== null && !this.transport.grid;
    // the exact answer may take a while: the first one comes at once, with the last margins
    const isPreview = !pin && !this.transport.grid && !same(setting, this.sent);
    const exact = pin ? true : this.pending.exact && !isPreview;
    if (!pin) this.pending = isPreview && this.pending.exact ? this.pending : null;
    this.inputs.set(this.seq + 1, this.since);
    this.since = undefined;
    this.sent = setting;
    const margins = keepsMargins && !exact ? { margins: this.setting.goals.map((one) => one.margin?.margin ?? null) } : {};
    this.send("set", { seq: ++this.seq, setting, exact, ...margins });
  }

  requestViews(seq) {
    this.viewSeq = seq;
    for (const view of ["verdicts", "ranges", ...(this.isDetailed ? LATER : [])]) {
      const words = view === "frontier" ? { x: this.axis("x"), y: this.axis("y") } : {};
      this.send("view", { seq, view, setting: plain(this.setting), ...words });
    }
  }

  axis(name) {
    const word = this.axes[name], goals = this.setting.goals;
    if (word === "error" || (word === "tail" && name === "y")) return word;
    if (/^\d+$/.test(word ?? "") && Number(word) < goals.length) return Number(word);
    if (name === "y") return "tail";
    const first = goals.findIndex((one, place) => one.on && place !== this.axis("y"));
    return first >= 0 ? first : "error"; // which the loss of a large tail follows closely
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

  change(changes, exact = false, run = null) {
    const wanted = { ...this.setting, ...changes }, grid = this.transport.grid;
    this.setting = grid ? this.within(grid, wanted) : wanted;
    if (exact) this.remember(run);
    this.requestAnswer(exact);
  }

  within(grid, wanted) { // of a file: the setting it holds that has what was changed, the rest put back where needed
    const { setting, moved } = grid.nearest(wanted, this.setting);
    this.fileNote.textContent = moved.length ? `This file has no result for that together with ${moved.join(" and ")}, which was reset.` : "";
    this.setting = structuredClone(setting);
    this.rows.forEach((row, place) => this.nameRow(row, this.setting.goals[place]));
    this.paintControls();
    return this.setting;
  }

  changeGoal(place, changes, exact = false, run = null) {
    const goals = this.setting.goals.map((one, at) => (at === place ? { ...one, ...changes } : one));
    this.change({ goals }, exact, run);
  }

  remember(run = null) { // steps by keys on one control, one after the other, are undone together
    const text = JSON.stringify(plain(this.setting)), last = this.undoStack.length - 1;
    const goesOn = run !== null && run === this.run && last > 0;
    this.run = run;
    if (this.undoStack[last] !== text) {
      if (goesOn) this.undoStack.pop();
      if (this.undoStack[this.undoStack.length - 1] !== text) this.undoStack.push(text);
      this.redoStack = [];
    }
    this.keep();
    this.paintHistory();
  }

  keep() {
    const pins = this.pins.map((pin) => pin.setting);
    this.transport.writeState(JSON.stringify({ setting: plain(this.setting), axes: this.axes, pins }));
  }

  move(setting) {
    this.run = null;
    this.setting = setting;
    this.keep();
    this.buildGoals();
    this.paintControls();
    this.paintHistory();
    this.requestAnswer(true);
  }

  undo() {
    if (this.undoStack.length < 2) return;
    this.redoStack.push(this.undoStack.pop());
    this.move(JSON.parse(this.undoStack[this.undoStack.length - 1]));
  }

  redo() {
    if (!this.redoStack.length) return;
    this.undoStack.push(this.redoStack.pop());
    this.move(JSON.parse(this.undoStack[this.undoStack.length - 1]));
  }

  go(setting) {
    this.setting = setting;
    this.remember();
    this.move(setting);
  }

  addPin(answer) {
    if (!answer || this.conflict || this.pins.length >= MOST_PINS) return;
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
    this.notice = el("p", { role: "alert", class: "error" });
    const rows = hello.datasets[0];
    const about = `${count(rows.rows)} selection rows` + (hello.held_out ? `, ${count(hello.held_out)} held-out rows` : "") +
      `; ${hello.models === 1 ? "one model" : `${hello.models} models`}; positive class ${hello.classes.positive}`;
    this.root.append(el("header", {}, el("h1", {}, hello.title), [about, ...hello.notes].map((text) => el("p", { class: "muted detail" }, text)), this.notice, this.status));
    this.alert = el("div", { role: "alert", "aria-label": "Conflict" });
    const controls = el("div", { class: "controls", role: "region", "aria-label": "Settings", tabindex: "0" },
      this.brief = el("p", { class: "brief", "aria-hidden": "true" }), this.buildHistory(), this.alert, el("div", {}, el("h2", {}, "Goals"), this.buildLegend(), this.goalList = el("ul", { class: "goals" })),
      hello.is_file ? this.buildFileNote() : this.buildAdding(), this.buildConfidence(), this.buildTail(), hello.is_file ? null : this.buildBudget(),
      hello.is_file || !hello.can_defer ? null : this.buildDeferral(), this.buildBy(), this.buildExports(), this.buildMore());
    this.watchEnd(controls);
    this.panels = {};
    const views = [this.panel("people", "Of 1,000 people"), this.panel("summary", "Loss"), this.panel("rates", "Rates by group"),
      this.panel("scores", "Scores and rules"), this.panel("mixture", "Mixture"), this.panel("curve", "Loss of every tail"),
      this.panel("frontier", "Frontier", this.buildAxes()), this.panel("segments", "Who is in the tail"), this.panel("pins", "Pinned settings")];
    const [people, pins, details] = [views.shift(), views.pop(), el("div", { class: "views" }, views)];
    this.panels.scores.box.hidden = hello.kind !== "rules";
    for (const name of hello.is_file ? ["frontier", "segments"] : []) this.panels[name].box.hidden = true;
    this.root.append(el("main", { class: "columns" }, el("div", {}, this.buildTabs(people, details), people, details, pins), controls));
    this.undoStack = [JSON.stringify(plain(this.setting))];
    this.buildGoals();
    this.paintControls();
    this.paintHistory();
    this.paintPins();
  }

  buildTabs(people, details) { // what a person who decides needs, and what is behind it
    const tabs = [["Decisions", people], ["Details", details]].map(([name, part]) => {
      part.id ||= freshId("part");
      part.setAttribute("role", "tabpanel");
      part.setAttribute("aria-label", name);
      return el("button", { type: "button", role: "tab", "aria-controls": part.id, onclick: () => open(name), onkeydown: (event) => {
        if (!/^(Arrow(Left|Right)|Home|End)$/.test(event.key)) return;
        event.preventDefault();
        open(this.isDetailed ? "Decisions" : "Details").focus();
      } }, name);
    });
    const open = (name) => {
      this.isDetailed = name === "Details";
      this.root.classList.toggle("detailed", this.isDetailed);
      [people.hidden, details.hidden] = [this.isDetailed, !this.isDetailed];
      tabs.forEach((tab) => fill(tab, { "aria-selected": String(tab.textContent === name), tabindex: tab.textContent === name ? "0" : "-1" }, []));
      if (this.answer) this.paintViews();
      if (this.conflict) this.markOutdated();
      else if (this.isDetailed && this.answer) {
        for (const view of LATER) this.note(view, COMPUTED, true);
        if (this.answer.exact && !this.pending) this.requestViews(this.answer.seq);
      }
      return tabs.find((tab) => tab.textContent === name);
    };
    open("Decisions");
    return el("div", { class: "bar tabs", role: "tablist", "aria-label": "What the page shows" }, tabs);
  }

  buildLegend() {
    if (this.hello.is_file) return null; // whose bounds are listed beside each slider
    const bar = (style, text) => this.swatches([[style, text]]);
    const margins = this.hello.why_no_margins ? null : [" With a confidence, a second figure shows the bound\u00a0",
      draw("svg", { viewBox: "0 0 8 12", width: 6, height: 12, class: "swatch thin", "aria-hidden": "true" }, draw("line", { class: "bound", x1: 4, x2: 4, y1: 0, y2: 12 })),
      ", the ", bar("margin", "margin inside of it"), " and what is ",
      draw("svg", { viewBox: "0 0 22 8", width: 22, height: 8, class: "swatch", "aria-hidden": "true" }, draw("path", { class: "ink", d: "M1,1V7M1,4H21M21,1V7" })), " expected in the population."];
    return el("p", { class: "muted detail" }, "The bar below a bound shows the values that can be met: ", bar("f1", "at a price"), bar("band", "at no cost"), "The rest cannot be met.", margins);
  }

  buildFileNote() {
    this.fileNote = el("p", { "aria-live": "polite" });
    const { settings, by, budget, defer, confidence } = this.hello.file;
    const fixed = [by.length ? `thresholds that differ by ${by.join(", ")}` : "", budget === null ? "" : `a budget of ${shown(budget)}`,
      defer === null ? "" : `a cost of deferral of ${shown(defer)}`, confidence === null ? "" : `a confidence of ${fewDigits(confidence)}`].filter(Boolean);
    return el("div", {}, this.fileNote, el("p", { class: "muted" }, `This file has the results for ${settings} settings` +
      `${fixed.length ? `, all with ${fixed.join(" and ")}` : ""}. For other bounds, other goals, frontiers and exports, run counterpoise explore.`));
  }

  buildMore() { return el("p", { class: "more", "aria-hidden": "true", hidden: true }, "more below ↓"); }

  watchEnd(controls) { // shows "more below" while settings are out of sight
    const more = controls.lastChild;
    const look = () => { more.hidden = controls.scrollHeight - controls.scrollTop - controls.clientHeight < 24; };
    controls.addEventListener("scroll", look, { passive: true });
    new ResizeObserver(look).observe(controls);
    new ResizeObserver(look).observe(this.goalList);
  }

  panel(name, title, more) {
    const heading = freshId(name), body = el("div", { class: "body" });
    const word = el("span", { class: "stale-word" });
    const save = ["people", "summary", "mixture", "segments", "pins"].includes(name) ? null
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

  slider(label, { low, high, step, values = null, toSlider = (one) => one, fromSlider = (one) => one, describe, change }) {
    const id = freshId("slider"), alone = values?.length === 1;
    const [to, from] = values ? [(one) => nearestPlace(values, one), (place) => values[place]] : [toSlider, fromSlider];
    const [first, last] = values ? [0, values.length - 1] : [toSlider(low), toSlider(high)];
    const range = el("input", { type: "range", id, min: first, max: last, step: values ? 1 : step, disabled: alone });
    const problem = el("p", { id: freshId("problem"), class: "error wide", role: "alert" });
    const exact = el("input", { type: "number", min: low, max: high, step: values ? "any" : 0.001, disabled: alone, "aria-describedby": problem.id });
    let current = low, isTyping = false, byKeys = false;
    const write = (value) => {
      if (value !== current) problem.textContent = ""; // which was about another
      current = value;
      if (!isTyping) exact.value = fewDigits(value);
      range.value = to(value);
      range.setAttribute("aria-valuetext", describe(value));
    };
    const finish = (value, word) => {
      isTyping = false;
      write(value);
      problem.textContent = word;
    };
    const steps = (event) => { byKeys = event.type === "keydown" && /^(Arrow|Page)/.test(event.key); };
    for (const one of [range, exact]) {
      one.addEventListener("keydown", steps);
      one.addEventListener("pointerdown", steps);
      one.addEventListener("blur", () => { this.run = null; });
    }
    range.addEventListener("input", () => { const value = from(Number(range.value)); finish(value, ""); change(value, false); });
    range.addEventListener("change", () => change(from(Number(range.value)), true, byKeys ? id : null));
    exact.addEventListener("input", () => { isTyping = !byKeys; });
    exact.addEventListener("change", () => {
      const typed = exact.value, value = Number(typed);
      if (typed === "" || (!values && !(value >= low && value <= high))) {
        finish(current, `Enter a number from ${fewDigits(low)} to ${fewDigits(high)}; got ${typed || "none"}. The value is still ${fewDigits(current)}.`);
        return;
      }
      const own = values ? values[nearestPlace(values, value)] : value;
      finish(own, Math.abs(own - value) <= 1e-4 * (high - low) ? "" : // as a part of the slider, whose steps are as fine
         `This file has no result for ${typed}. The page shows the nearest value that it has.`);
      change(own, true, byKeys ? id : null);
    });
    const name = (text) => { range.setAttribute("aria-label", text); exact.setAttribute("aria-label", `${text}, as a number`); };
    name(label);
    return { id, range, exact, problem, write, name };
  }

  buildTail() {
    if (this.hello.start.alpha === null) {
      return el("p", { class: "detail" }, "This model minimises ", el("code", {}, this.hello.objective));
    }
    if (this.hello.decision === "fixed") {
      return el("p", { class: "detail" }, "This model minimises the average loss. To improve a tail, fit it with ", el("code", {}, 'decision="sticky"'), ".");
    }
    this.alpha = this.slider("Tail", {
      low: this.leastAlpha, high: 1, step: 0.002, toSlider: (one) => Math.log10(Math.max(one, this.leastAlpha)), values: this.transport.grid?.alphas,
      fromSlider: (one) => Number(Math.min(10 ** one, 1).toPrecision(4)), describe: (one) => `the worst ${percent(one)} of the rows`,
      change: (alpha, exact, run) => this.change({ alpha }, exact, run),
    });
    this.alpha.range.removeAttribute("aria-label"); // it has a label that is seen
    return el("div", { class: "field detail" }, el("label", { for: this.alpha.id }, "Tail: the worst-off fraction of the rows (alpha)"),
      this.alpha.exact, el("div", { class: "wide" }, this.alpha.range), this.alpha.problem, this.held(this.transport.grid?.alphas));
  }

  held(values) { // the values that a file has results for
    return values ? el("p", { class: "muted wide" }, `In this file: ${values.map(fewDigits).join(", ")}.`) : null;
  }

  buildBudget() {
    const id = freshId("budget");
    this.budgetOn = el("input", { type: "checkbox", id, onchange: () =>
      this.change({ budget: this.budgetOn.checked ? 0.02 : null }, true) });
    this.budget = this.slider("Budget", {
      low: 0, high: 0.5, step: 0.001, describe: (one) => `${percent(one)} above the least average loss`,
      change: (budget, exact, run) => { if (this.budgetOn.checked) this.change({ budget }, exact, run); },
    });
    return el("div", { class: "field detail" },
      el("label", { for: id, class: "check" }, this.budgetOn, "Limit the average loss (budget)"), this.budget.exact,
      el("div", { class: "wide" }, this.budget.range), this.budget.problem);
  }

  buildDeferral() {
    const id = freshId("defer");
    this.deferOn = el("input", { type: "checkbox", id, onchange: () => this.change({ defer: this.deferOn.checked ? 0.2 : null }, true) });
    this.defer = this.slider("Cost of deferral", {
      low: 0, high: 0.5, step: 0.005, describe: (one) => `a deferred row counts as ${shown(one)} of an error`,
      change: (defer, exact, run) => { if (this.deferOn.checked) this.change({ defer }, exact, run); },
    });
    return el("div", { class: "field detail" },
      el("label", { for: id, class: "check" }, this.deferOn, "Allow deferral to a person, at a cost"), this.defer.exact,
      el("div", { class: "wide" }, this.defer.range), this.defer.problem);
  }

  buildConfidence() {
    const { is_file: isFile, why_no_margins: why, start } = this.hello, own = start.confidence, id = freshId("confidence");
    if (isFile && (why || own === null)) return null;
    this.confidenceOn = el("input", { type: "checkbox", id, disabled: isFile || Boolean(why), onchange: () =>
      this.change({ confidence: this.confidenceOn.checked ? own ?? USUAL_CONFIDENCE : null }, true) });
    this.confidence = this.slider("Confidence that all goals hold on new rows", {
      low: Math.min(0.5, own ?? 0.5), high: Math.max(0.99, own ?? 0.99), step: 0.01, describe: (one) => `all goals hold on new rows in about ${percent(one)} of the cases`,
      fromSlider: (one) => Number(one.toFixed(4)),
      change: (confidence, exact, run) => { if (this.confidenceOn.checked) this.change({ confidence }, exact, run); },
    });
    this.marginWords = el("p", { class: "wide", "aria-live": "polite" });
    this.marginLimits = el("p", { class: "wide undecided", "aria-live": "polite" });
    return this.confidenceField = el("div", { class: why ? "field detail" : "field" },
      el("label", { for: id, class: "check" }, this.confidenceOn, "Confidence that all goals hold on new rows"), this.confidence.exact,
      el("div", { class: "wide" }, this.confidence.range), this.confidence.problem, this.marginWords, this.marginLimits);
  }

  paintConfidence() {
    if (!this.confidenceOn) return;
    const { confidence } = this.setting, isOn = confidence !== null && confidence !== undefined, { margins } = this.answer ?? {};
    this.confidenceOn.checked = isOn;
    this.confidence.write(confidence ?? this.hello.start.confidence ?? USUAL_CONFIDENCE);
    this.confidence.range.disabled = this.confidence.exact.disabled = !isOn || this.hello.is_file;
    if (margins && !margins.is_kept) this.lastMargins = margins;
    const isKept = !margins || margins.is_kept || Boolean(this.conflict), { price = "", limits = "" } = this.lastMargins ?? {};
    const none = "None: the goals are met on the selection rows, and each may fail on new rows about half of the time.";
    // what is known of the last margins stays where it is while a value moves, so that nothing below jumps
    const computed = price || limits ? price : "Margins are being computed.";
    const words = !price ? computed : margins?.is_too_much ? "The last margins are too large for these goals." : `${price} (Last setting.)`;
    this.marginWords.textContent = this.hello.why_no_margins || (!isOn ? none : isKept ? words : computed);
    this.marginLimits.textContent = isOn ? rounded(limits) : "";
    this.marginWords.classList.toggle("muted", isKept || !isOn);
    this.marginLimits.classList.toggle("stale", isKept);
    this.confidenceField.setAttribute("aria-busy", String(isOn && isKept && !this.conflict));
  }

  buildBy() {
    this.byBoxes = this.hello.by.map((name) => {
      const box = el("input", { type: "checkbox", onchange: () => {
        const by = this.byBoxes.filter((one) => one.box.checked).map((one) => one.name);
        if (by.length <= this.hello.most.by) { this.change({ by }, true); return; }
        box.checked = false;
        this.byNote.textContent = `Thresholds can differ by at most ${this.hello.most.by} columns. Clear one of them first.`;
      } });
      return { name, box };
    });
    this.byNote = el("p", { class: "undecided", "aria-live": "polite" });
    return this.byBoxes.length ? el("fieldset", { class: "detail" }, el("legend", {}, "Thresholds may differ by"),
      el("div", { class: "bar" }, this.byBoxes.map(({ name, box }) => el("label", { class: "check" }, box, name))), this.byNote) : null;
  }

  buildExports() {
    const names = { goals: "Goals file", model: "Model file", report: "Report" };
    this.exported = el("p", { role: "status", class: "muted" }); // beside the buttons, which may be far from the top
    return el("div", {}, el("div", { class: "bar", role: "group", "aria-label": "Export" }, (this.hello.exports || []).map((what) =>
      el("button", { type: "button", onclick: () => this.export(what) }, names[what]))), this.exported);
  }

  async export(what) {
    const say = (text) => { this.exported.textContent = text; };
    say(what === "goals" ? "" : "Writing the file.");
    const reply = await this.request("export", { what, setting: plain(this.setting) });
    if (reply.type === "refused") say(reply.message);
    else if (reply.text !== undefined) download(reply.name, reply.text, "text/plain");
    else say(`The server wrote the file: ${reply.path}`);
  }

  buildAxes() {
    const choose = (name, label) => {
      const id = freshId("axis");
      this[`${name}Axis`] = el("select", { id, onchange: (event) => {
        this.axes = { ...this.axes, [name]: event.target.value };
        this.keep();
        this.paintAxes();
        if (this.answer?.exact && !this.conflict) {
          this.note("frontier", COMPUTED, true);
          this.send("view", { seq: this.viewSeq, view: "frontier", setting: plain(this.setting), x: this.axis("x"), y: this.axis("y") });
        }
      } });
      return [el("label", { for: id }, label), this[`${name}Axis`]];
    };
    return el("div", { class: "bar" }, choose("y", "Lowest"), choose("x", "for each bound of"));
  }

  paintAxes() {
    for (const name of ["x", "y"]) {
      const first = name === "x" ? [["error", "error rate"]] : [["tail", this.setting.alpha === null ? "objective" : "loss of the tail"], ["error", "error rate"]];
      const goals = this.setting.goals.map((one, place) => [String(place), one.left || one.text]);
      const select = this[`${name}Axis`];
      const taken = String(this.axis(name === "x" ? "y" : "x"));
      select.replaceChildren(...[...first, ...goals].map(([value, text]) => el("option", { value, disabled: value === taken }, clipped(text))));
      select.value = String(this.axis(name));
    }
  }

  // -------- goals

  buildGoals() {
    this.rows = this.setting.goals.map((goal, place) => this.goalRow(goal, place));
    this.goalList.replaceChildren(...this.rows.map((row) => row.item));
    if (!this.rows.length) this.goalList.append(el("li", { class: "muted" }, this.hello.is_file ? "No goals." : "No goals: add one below."));
    this.paintAxes();
    this.takeRanges([]);
  }

  goalRow(goal, place) {
    const low = goal.low ?? Math.min(0, goal.bound ?? 0), high = goal.high ?? Math.max(1, goal.bound ?? 1);
    const name = el("code", {}), { is_file: isFile } = this.hello, values = this.transport.grid?.bounds[place];
    const slider = this.slider("", {
      low, high, step: (high - low) / 1000, describe: (one) => shown(one), values,
      change: (bound, exact, run) => this.changeGoal(place, { bound }, exact, run),
    });
    const on = el("input", { type: "checkbox", role: "switch", disabled: isFile && !this.transport.grid.switches[place],
      onchange: () => this.changeGoal(place, { on: on.checked }, true) });
    const track = draw("svg", { class: "track", viewBox: "0 0 100 8", preserveAspectRatio: "none", "aria-hidden": "true" });
    const room = el("p", { class: "muted" }), standing = el("p", { class: "detail" }), margin = el("div", {}), held = el("p", {}), fileBound = this.hello.file_bounds[goal.text];
    const remove = isFile ? null : el("button", { type: "button", onclick: () => {
      this.change({ goals: this.setting.goals.filter((_, at) => at !== place) }, true);
      this.buildGoals();
      (this.rows[Math.min(place, this.rows.length - 1)]?.on ?? this.buttons.undo).focus();
    } }, "Remove");
    const item = el("li", {},
      el("div", { class: "field" }, el("span", { class: "check" }, on, name), slider.exact, slider.problem),
      el("p", { class: "muted meaning" }, this.meaning(goal)), slider.range, isFile ? this.held(values) : [track, room], standing, el("div", { class: "detail" }, margin), el("div", { class: "bar ends" }, held, remove),
      fileBound === undefined ? null : el("p", { class: "muted" }, `bound in the goals file: ${fewDigits(fileBound)}`));
    const row = { item, name, slider, on, track, room, standing, margin, held, remove, low, high };
    this.nameRow(row, goal);
    return row;
  }

  meaning({ left, text }) { // of the names in a goal
    const names = new Set((left ?? text).match(/[a-z_0-9]+(?=\(|,|$| )/g));
    return [...this.hello.phrases, ...this.hello.metrics].filter((one) => names.has(one.name)).map((one) => `${one.name}: ${one.meaning.replace(/ \(also [^)]*\)/, "")}`).join("; ");
  }

  nameRow(row, goal) {
    const text = goalWords(goal);
    if (goal.bound !== undefined) row.slider.write(goal.bound);
    row.on.checked = goal.on;
    row.item.className = goal.on ? "" : "off";
    if (row.name.textContent === text) return;
    row.name.textContent = text;
    row.slider.name(`Bound of ${text}`);
    row.on.setAttribute("aria-label", `Goal ${text} counts`);
    row.remove?.setAttribute("aria-label", `Remove the goal ${text}`);
  }

  paintGoals() {
    const goals = this.answer.goals;
    this.setting.goals.forEach((goal, place) => {
      const { left, sense, sign, right, low, high } = goals[place] ?? {};
      if (left) Object.assign(goal, { left, sense, sign, right, low, high });
      if (!this.answer.margins?.is_kept) goal.margin = this.answer.margins?.goals[place] ?? null;
    });
    // how far a bound can move is known by now
    if (this.rows.some((row, place) => goals[place] && (row.low !== goals[place].low || row.high !== goals[place].high))) this.buildGoals();
    this.rows.forEach((row, place) => {
      const one = goals[place];
      if (!one) return;
      this.nameRow(row, this.setting.goals[place]);
      const price = !one.on ? "off" : one.price === null ? "" : one.is_free ? "costs nothing" : `price ${shown(one.price)}`;
      const choice = one.choice.note ?? `${shown(one.choice.value)}${one.choice.worst ? ` (${one.choice.worst})` : ""}`;
      const word = one.choice.note ? "" : one.choice.holds ? "holds" : "missed";
      row.standing.replaceChildren("Selection rows: ", choice, " ", el("span", { class: `verdict ${word === "missed" ? "fails" : word}` }, word), price ? ` · ${price}` : "");
      this.paintMargin(row, one);
      this.paintHeld(row, one.held_out);
    });
  }

  paintMargin(row, goal) { // between the bound and the estimate
    const { margin } = this.setting.goals[this.rows.indexOf(row)], { value, bound } = goal.choice;
    if (!margin || !goal.on || value === undefined || value === null || bound === null) { row.margin.replaceChildren(); return; }
    if (margin.note) { row.margin.replaceChildren(el("p", { class: "muted" }, margin.note)); return; }
    const [low, high] = [margin.low, margin.high].map((end) => value + end - margin.value); // where margins are kept, the value has moved
    const ends = [bound, value, low, high], least = Math.min(...ends), most = Math.max(...ends), x = scale(least, most, 8, WIDE - 8);
    const figure = draw("svg", { viewBox: `0 0 ${WIDE} 20`, role: "img", "aria-label": `Bound ${shown(bound)}, aimed at ${shown(value)}, ${shown(low)} to ${shown(high)} expected in the population` },
      draw("line", { class: "grid", x1: 0, x2: WIDE, y1: 10, y2: 10 }),
      draw("rect", { class: "margin", x: Math.min(x(bound), x(value)), y: 7, width: Math.abs(x(value) - x(bound)), height: 6 }),
      draw("path", { class: "ink", fill: "none", d: `M${x(low)},6V14M${x(low)},10H${x(high)}M${x(high)},6V14` }),
      draw("line", { class: "bound", x1: x(bound), x2: x(bound), y1: 1, y2: 19 }), draw("circle", { class: "f1", cx: x(value), cy: 10, r: 4 }));
    const isKept = Boolean(this.answer.margins?.is_kept), price = margin.cost && !this.answer.margins?.is_too_much ? `, which costs ${margin.cost}` : "";
    row.margin.className = isKept ? "stale" : "";
    row.margin.replaceChildren(figure, el("p", {}, `New rows: ${shown(low)} to ${shown(high)} expected · ${shown(Math.abs(value - bound))} inside of the bound${price}`));
  }

  paintHeld(row, held) {
    if (!held) { row.held.replaceChildren(); return; }
    if (held.verdict === "not asked") { row.held.replaceChildren(el("span", { class: "muted" }, `Held-out rows: ${held.note}`)); return; }
    row.held.replaceChildren("Held-out rows: ", `${shown(held.estimate)} (${shown(held.low)} to ${shown(held.high)}) `,
      el("span", { class: `verdict ${held.verdict}` }, held.words), held.note ? el("span", { class: "muted" }, ` ${held.note}`) : "");
  }

  takeVerdicts(verdicts) {
    verdicts.forEach((held, place) => { if (this.rows[place]) this.paintHeld(this.rows[place], held); });
  }

  takeRanges(ranges) {
    this.rows.forEach((row, place) => {
      const range = ranges.find((one) => one.place === place);
      row.track.replaceChildren();
      row.room.textContent = "";
      if (!range || range.tightest === null) return;
      const x = scale(row.low, row.high, 0, 100), sense = this.setting.goals[place].sense;
      const loose = sense === "<=" ? row.high : row.low, free = range.free ?? range.tightest;
      const part = (from, to, style) => {
        const [a, b] = [x(from), x(to)].sort((one, other) => one - other);
        if (b > a) row.track.append(draw("rect", { class: style, x: Math.max(a, 0), y: 0, width: Math.min(b, 100) - Math.max(a, 0), height: 8 }));
      };
      part(range.tightest, loose, "band");
      const inside = sense === "<=" ? free > range.tightest : free < range.tightest;
      if (inside) part(range.tightest, free, "f1");
      const [toward, beyond] = sense === "<=" ? ["down", "more"] : ["up", "less"];
      row.room.textContent = `The bound can go ${toward} to ${shown(range.tightest)}. At ${shown(free)} or ${beyond} it costs nothing.`;
    });
  }

  // -------- adding a goal

  buildAdding() {
    const select = (label, options, change) => {
      const id = freshId("pick");
      const box = el("select", { id, onchange: change }, options.map(([value, text]) => el("option", { value }, text)));
      return { box, field: el("div", {}, el("label", { for: id }, label), " ", box) };
    };
    const { metrics, phrases, datasets: data, classes: labels } = this.hello;
    const hasBaseline = data.some((one) => one.baseline), groupsOf = (name) => data.find((one) => one.name === name).columns;
    const suits = (one) => hasBaseline || !one.needs.split(", ").includes("baseline");
    const phrase = select("Kind", [["", "one rate"], ...phrases.filter(suits).map((one) => [one.name, one.name])], () => { shapes(); compose(); });
    const metric = select("Metric", [], () => { groups(); compose(); });
    const dataset = select("Rows", data.map((one) => [one.name, one.name]), () => { groups(); compose(); });
    const column = select("Group", [], () => { values(); compose(); });
    const value = select("Value", [], () => compose());
    const classes = select("Class", [["", `positive (${labels.positive})`], [labels.negative, labels.negative]], () => compose());
    const amount = select("Counting", [], () => compose());
    const sense = select("Must be", [[">=", "at least"], ["<=", "at most"], ["==", "equal to"]], () => compose());
    const least = select("Small groups", [["", "count"], ...["20", "50", "100"].map((n) => [n, `left out below ${n} rows`])], () => compose());
    const help = el("p", { class: "muted", "aria-live": "polite" });
    const setOptions = (box, entries) => {
      const before = box.value;
      box.replaceChildren(...entries.map(([name, text]) => el("option", { value: name }, text)));
      if (entries.some(([name]) => name === before)) box.value = before;
    };
    const form = () => phrases.find((one) => one.name === phrase.box.value);
    const isSum = (name) => name === "total" || name === "cost"; // which count any amounts, losses too
    const hasAmounts = data.some((one) => [one.amounts, one.profits].some((names) => names?.length));
    const shapes = () => { // what a kind of goal leaves open
      const kind = form();
      const fits = (one) => suits(one) && !(kind?.compares && one.is_ratio) && !(isSum(one.name) && (kind || (one.name === "total" && !hasAmounts)));
      setOptions(metric.box, metrics.filter(fits).map((one) => [one.name, one.name]));
      metric.field.hidden = kind !== undefined && !kind.takes_metric;
      least.field.hidden = kind === undefined;
      if (kind?.sense) sense.box.value = kind.sense;
      sense.box.disabled = Boolean(kind?.sense);
      groups();
    };
    const groups = () => {
      const known = Object.keys(groupsOf(dataset.box.value)).map((name) => [name, name]);
      setOptions(column.box, form()?.by ? known : [["", "all rows"], ...known]);
      const { amounts = [], profits = [] } = data.find((one) => one.name === dataset.box.value), name = form() ? "" : metric.box.value;
      const counted = [...amounts, ...(isSum(name) ? profits : [])].map((one) => [one, `amounts of ${one}`]);
      setOptions(amount.box, [...(name === "total" ? [] : [["", "rows"]]), ...counted]);
      amount.field.hidden = !counted.length;
      classes.field.hidden = name === "cost" || (form() !== undefined && !form().by);
      values();
    };
    const values = () => {
      const known = groupsOf(dataset.box.value)[column.box.value] || [];
      setOptions(value.box, known.map((name) => [name, name]));
      value.field.hidden = !known.length || Boolean(form()?.by);
    };
    const columnName = (name) => (this.hello.reserved.includes(name) ? `'${name}'` : quoted(name)); // words of the language are no columns
    const compose = () => {
      const kind = form(), takes = !kind || kind.takes_metric, rate = metrics.find((one) => one.name === metric.box.value);
      const where = column.box.value && !kind?.by ? `${columnName(column.box.value)}=${quoted(value.box.value)}` : "";
      const of = classes.box.value && !classes.field.hidden ? `of=${quoted(classes.box.value)}` : "";
      const by = kind?.by ? `by=${columnName(column.box.value)}` : "", rows = dataset.box.value === "train" ? "" : quoted(dataset.box.value);
      const small = kind && least.box.value ? `min_rows=${least.box.value}` : "", money = amount.box.value && columnName(amount.box.value);
      const [yes, no] = [labels.positive, labels.negative].map(quoted), isCost = !kind && metric.box.value === "cost";
      const counting = isCost ? `{${yes}->${no}: ${money || 1}, ${no}->${yes}: 1}` : money && `value=${money}`;
      const parts = [kind && takes ? metric.box.value : "", rows, where, of, counting, by, small].filter(Boolean).join(", ");
      const name = kind ? kind.name : metric.box.value, bound = { "<=": 0.1, ">=": 0.8 }[kind?.sense] ?? 0.5;
      input.value = `${name}${parts && `(${parts})`} ${sense.box.value} ${bound}`;
      help.textContent = [kind, takes ? rate : null].filter(Boolean).map((one) => `${one.name}: ${one.meaning}.`).join(" ");
      complete();
    };
    const list = el("datalist", { id: freshId("words") }), problem = el("pre", { class: "error", role: "alert" });
    const id = freshId("goal");
    const input = el("input", { type: "text", id, list: list.id, autocomplete: "off", spellcheck: "false", oninput: () => complete() });
    const columns = new Set(data.flatMap((one) => [...Object.keys(one.columns), ...(one.amounts || [])]));
    const names = [...this.hello.words.map((one) => [one, one]), ...[...data.map((one) => one.name), ...columns].map((one) => [one, columnName(one)])];
    const complete = () => {
      const start = /[A-Za-z_0-9]*$/.exec(input.value)[0];
      const matches = start ? names.filter(([name]) => name.startsWith(start) && name !== start).slice(0, 12) : [];
      const before = input.value.slice(0, input.value.length - start.length);
      list.replaceChildren(...matches.map(([, written]) => el("option", { value: before + written })));
    };
    const add = async (event) => {
      event.preventDefault();
      const read = await this.request("read", { text: input.value, setting: plain(this.setting) });
      const isThere = this.setting.goals.some((one) => one.text === read.goal?.text);
      problem.textContent = isThere ? "This goal is already in the list. Move its bound instead." : read.type === "refused" ? read.message : "";
      if (problem.textContent) { input.setAttribute("aria-invalid", "true"); return; }
      input.removeAttribute("aria-invalid");
      this.change({ goals: [...this.setting.goals, read.goal] }, true);
      this.buildGoals();
      this.say(`Added: ${read.goal.text}`);
    };
    shapes();
    compose();
    return el("details", {}, el("summary", {}, "Add a goal"),
      el("form", { onsubmit: add }, el("div", { class: "bar" }, [phrase, metric, dataset, column, value, classes, amount, least, sense].map((one) => one.field)), help,
        el("label", { for: id }, "Goal as text"), input, list, problem, el("button", { class: "main" }, "Add")));
  }

  // -------- drawing

  stale() {
    this.goalList.setAttribute("aria-busy", "true");
    if (this.isDetailed) for (const name of LATER) this.note(name, COMPUTED, true);
    if (this.setting.confidence !== null) this.confidenceField?.setAttribute("aria-busy", "true");
  }

  note(name, word, isLoading = false) { // a note on what a panel shows; empty where it shows the current setting
    const panel = this.panels?.[name];
    if (!panel) return;
    panel.isLoading = isLoading;
    panel.body.classList.toggle("stale", Boolean(word));
    panel.body.setAttribute("aria-busy", String(isLoading));
    panel.word.textContent = word;
  }

  say(text) { if (this.status) this.status.textContent = text; else this.root.querySelector("[role=status]")?.replaceChildren(text); }

  paintHistory() {
    this.buttons.undo.disabled = this.undoStack.length < 2;
    this.buttons.redo.disabled = !this.redoStack.length;
    this.buttons.pin.disabled = this.pins.length >= MOST_PINS || Boolean(this.conflict || this.answer?.is_last);
  }

  paintControls() {
    if (this.alpha) this.alpha.write(this.setting.alpha ?? 1);
    this.paintConfidence();
    for (const { name, box } of this.byBoxes) box.checked = this.setting.by.includes(name);
    const { by } = this.setting, added = by.filter((name) => !this.hello.start.by.includes(name));
    this.byNote.textContent = by.length ? `Decisions will use ${by.join(" and ")}${added.length ? `; those of the model do not use ${added.join(" or ")}` : ""}.` : "";
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
    this.paintViews();
    this.paintPins();
    this.paintHistory();
    for (const name of AT_ONCE) this.note(name, this.answer.is_last ? LAST : "");
    this.say(this.answer.is_last ? "The page shows the last rule that was found, and what it does about these goals, until there is one for this setting." : "");
  }

  paintViews() { // only what is seen
    if (!this.isDetailed) { this.paintPeople(); return; }
    this.paintSummary();
    this.paintRates();
    this.paintScores();
    this.paintMixture();
  }

  // How many of 1,000 people of a group get each decision, and how many of these are wrong; null where few rows would show.
  people({ rates, wrong }) {
    const [positive, deferred] = ["positive_rate", "defer_rate"].map((name) => whole(rates[name]?.[0])), [over, under] = (wrong ?? [null, null]).map(whole);
    return { positive, deferred, wrong: [over, under], all: wrong ? over + under : null };
  }

  paintPeople() {
    const { groups: every, rows } = this.answer.rates, groups = every.length === 2 ? every.slice(0, 1) : every; // one group is all people
    const { today, classes } = this.hello, [yes, no] = [classes.positive, classes.negative].map((one) => `“${clipped(one, 24)}”`);
    const beside = [["today", today], ["as fitted", this.fitted && !this.isStart(this.answer.setting) && this.fitted !== this.answer ? this.fitted.rates.groups : null]]
      .filter(([, others]) => others).map(([name, others]) => [name, new Map(others.map((one) => [one.group, this.people(one)]))]);
    const body = this.panels.people.body, named = (value) => (value === null ? "–" : count(value));
    if (!groups.length) { body.replaceChildren(el("p", {}, "There are fewer than 10 people, so nothing is shown of them.")); return; }
    const defers = groups.some((one) => "defer_rate" in one.rates);
    const columns = [[`decided ${yes}`, (one) => one.positive], ["wrong decisions", (one) => one.all], [`${yes}, really ${no}`, (one) => one.wrong[0]],
      [`${no}, really ${yes}`, (one) => one.wrong[1]], ...(defers ? [["left to a person", (one) => one.deferred]] : [])];
    const all = this.people(groups[0]);
    const tile = (style, value, words) => el("div", { class: `tile ${style}` }, el("strong", {}, named(value)), " ", el("span", {}, words));
    const verdicts = this.answer.goals.filter((one) => one.on).map((one) => one.held_out?.verdict ?? (one.choice.holds === undefined ? "" : one.choice.holds ? "holds" : "fails"));
    const n = (word) => verdicts.filter((one) => one === word).length, open = verdicts.length - n("holds") - n("fails");
    const goals = el("div", { class: "tile" }, el("strong", { class: n("fails") ? "fails" : open ? "undecided" : "holds" }, `${n("holds")} of ${verdicts.length}`), " ",
      el("span", {}, `goals hold${n("fails") ? `; ${n("fails")} missed` : ""}${open ? `; ${open} ${open === 1 ? "is" : "are"} uncertain` : ""}`));
    const changes = beside.map(([name, others]) => {
      const other = others.get(groups[0].group);
      if (!other || other.all === null || all.all === null) return null;
      const more = (now, then, words) => (now === then ? `as many ${words}` : `${count(Math.abs(now - then))} ${now > then ? "more" : "fewer"} ${words}`);
      return el("p", {}, el("b", {}, name === "today" ? "Against today’s decisions: " : "Against the model as fitted: "),
        `${more(all.positive, other.positive, `decided ${yes}`)}, ${more(all.all, other.all, Math.abs(all.all - other.all) === 1 ? "wrong decision" : "wrong decisions")}`,
        ` (${more(all.wrong[0], other.wrong[0], `wrongly ${yes}`)}, ${more(all.wrong[1], other.wrong[1], `wrongly ${no}`)}).`);
    });
    this.brief.textContent = `Of 1,000 people ${named(all.positive)} are decided ${yes}; ${named(all.all)} decisions are wrong.`;
    body.replaceChildren(el("div", { class: "tiles" }, tile("", all.positive, `are decided ${yes}`), tile("wrong", all.all, `decisions are wrong: ${named(all.wrong[0])} are ${yes} and really ${no}, ${named(all.wrong[1])} are ${no} and really ${yes}`),
        all.deferred === null ? null : tile("", all.deferred, "are left to a person"), verdicts.length ? goals : null),
      el("div", { class: "changes", "aria-live": "polite" }, changes),
      table("Decisions by group, of 1,000 people", ["group", ...columns.map(([name], place) => (place === 1 ? [name, "total"] : name))], groups.map((one) => {
        const own = this.people(one);
        return [el("tr", { class: "numbers" }, el("th", { scope: "row", title: one.group }, one.group === "all" ? "all people" : clipped(valuesOf(one.group), 60), el("small", {}, `${count(one.rows)} people`)),
          columns.map(([, value], place) => el("td", { class: place === 1 ? "total" : null }, named(value(own)), beside.map(([name, others]) => el("small", {}, `${name} ${named(others.has(one.group) ? value(others.get(one.group)) : null)}`))))),
          el("tr", { "aria-hidden": "true" }, el("td", { colspan: columns.length + 1 }, this.peopleBar(own)))];
      })),
      el("p", { class: "muted" }, this.swatches([["f1", `${yes}, right`], ["f2", "wrong"], ["band", `${no}, right`], ...(defers ? [["margin", "left to a person"]] : [])]),
        `The line is where ${yes} ends and ${no} begins. ${rows === "held_out" ? `Counted on ${count(this.hello.held_out)} held-out people, whose true class is known.` : "Counted on the people that the rule was chosen on: on others it decides a little worse."} Each group is scaled to 1,000.`));
  }

  swatches(entries) {
    return entries.map(([style, text]) => [draw("svg", { viewBox: "0 0 22 8", width: 22, height: 8, class: "swatch", "aria-hidden": "true" },
      draw("rect", { class: style, width: 22, height: 8 })), ` ${text}. `]);
  }

  peopleBar({ positive, deferred, wrong, all }) { // decided yes: right, wrong; then decided no: wrong, right; then left to a person
    const bar = draw("svg", { viewBox: "0 0 1000 14", preserveAspectRatio: "none", class: "people" });
    if (all === null || positive === null) return bar;
    let from = 0;
    for (const [style, to] of [["f1", positive - wrong[0]], ["f2", positive + wrong[1]], ["band", 1000 - (deferred ?? 0)], ["margin", 1000]]) {
      bar.append(draw("rect", { class: style, x: from, y: 2, width: Math.max(to - from, 0), height: 10 }));
      from = Math.max(to, from);
    }
    bar.append(draw("line", { class: "ink", x1: positive, x2: positive, y1: 0, y2: 14, "vector-effect": "non-scaling-stroke" }));
    return bar;
  }

  markOutdated() { for (const name of [...AT_ONCE, ...LATER]) this.note(name, this.answer ? OUTDATED : "nothing to show yet"); }

  paintConflict() {
    const { kind, message, ways } = this.conflict;
    this.goalList.setAttribute("aria-busy", String(kind === "unmet"));
    this.alert.className = "alert";
    this.markOutdated();
    this.takeRanges([]);
    this.rows.forEach((row, place) => {
      this.nameRow(row, this.setting.goals[place]);
      row.standing.replaceChildren(el("span", { class: "muted" }, kind === "refused" ? "No result: this setting was refused." : "No result: these goals cannot be met together."));
      row.held.replaceChildren();
      row.margin.replaceChildren();
    });
    this.paintConfidence();
    this.paintHistory();
    if (kind === "unmet") {
      this.alert.replaceChildren(el("p", {}, "These goals cannot be met together. The explorer is finding out which of them conflict."));
      return;
    }
    const { conflict = [] } = this.conflict, use = (way) => el("button", { type: "button", class: "main", onclick: () => this.accept(way) }, `Use ${way.map((one) => rounded(one.instead)).join(" and ")}`);
    const words = !ways.length || !conflict.length ? [el("p", {}, rounded(message))] : [
      el("p", {}, conflict.length > 1 ? "These goals cannot hold together:" : "This goal cannot hold:"), el("ul", {}, conflict.map((one) => el("li", {}, el("code", {}, rounded(one))))),
      el("p", {}, ways.length > 1 ? "Choose what gives way:" : "This is the nearest that can be met:"),
      el("div", { class: "bar" }, ways.map(use)), el("details", {}, el("summary", {}, "More about this"), el("p", {}, rounded(message)))];
    this.alert.replaceChildren(...words);
    this.say("");
  }

  accept(way) {
    const refused = this.conflict.setting.goals;
    const goals = this.setting.goals.map((goal, place) => {
      const instead = way.find((one) => one.goal === refused[place]?.text);
      return instead ? { ...goal, bound: instead.bound } : goal;
    });
    this.change({ goals }, true);
    this.buildGoals();
    this.rows[goals.findIndex((goal, place) => goal.bound !== this.conflict?.setting.goals[place]?.bound)]?.slider.exact.focus();
  }

  paintSummary() {
    const { losses, value, lower, margins, objective } = this.answer, { alpha } = this.setting;
    const aim = alpha === null ? objective : alpha === 1 ? "Average loss" : `Loss of the worst ${percent(alpha)}`, rows = Object.entries(losses);
    const names = { choice: "selection rows", held_out: "held-out rows" };
    const head = ["rows", "average", ...(this.setting.alpha === null ? [] : ["tail"])];
    const line_ = (name, mean, tail) => el("tr", {}, el("th", { scope: "row" }, name), [mean, ...(tail === undefined ? [] : [tail])].map((value) => el("td", {}, shown(value))));
    this.panels.summary.body.replaceChildren(table("Loss, as a table", head, rows.flatMap(([name, one]) => [
      line_(names[name], one.mean, one.tail), line_(`plain, ${names[name]}`, one.plain_mean, one.plain_tail)])),
      this.answer.is_last ? "" : el("p", {}, `${aim} on the selection rows: ${shown(value)}, ${lower === null ? "found by a coarse search" : `at most ${shown(Math.max(value - lower, 0), 4)} above the best possible`}${!margins ? "" : margins.is_kept ? " with the last margins" : " without margins"}.`),
      el("p", { class: "muted" }, `Plain is the first model alone, with its usual threshold. ${this.hello.draws ? "Losses, rates and verdicts are expectations over the draws. " : ""}${this.answer.note || ""}`));
  }

  paintRates() {
    const { groups, rows } = this.answer.rates, names = groups.length ? Object.keys(groups[0].rates) : [];
    const figures = names.map((name) => this.rateFigure(name, groups));
    const listed = el("details", {}, el("summary", {}, "As a table"), table("Rates by group, as a table", ["group", "rows", ...names],
      groups.map((one) => el("tr", {}, el("th", { scope: "row" }, one.group), el("td", {}, one.rows),
        names.map((name) => el("td", {}, one.rates[name] ? shown(one.rates[name][0]) : "–"))))));
    const open = this.panels.rates.body.querySelector("details")?.open;
    if (open) listed.open = true;
    this.panels.rates.body.replaceChildren(...figures, el("p", { class: "muted" },
      rows === "held_out" ? "Rates of the decisions on held-out rows, with 95 % intervals." : this.hello.decision === "fixed" ? "Rates on the selection rows." : "Expected rates on the selection rows."), listed);
  }

  rateFigure(name, groups) {
    const high = 18 * groups.length + 26, x = scale(0, 1, 120, WIDE - 44);
    const spoken = groups.map((one) => `${one.group} ${one.rates[name] ? shown(one.rates[name][0]) : "none"}`).join(", ");
    const figure = draw("svg", { viewBox: `0 0 ${WIDE} ${high}`, role: "img", "aria-label": `${name}: ${spoken}` },
      draw("text", { x: 0, y: 12 }, name));
    groups.forEach((one, place) => {
      const y = 28 + 18 * place, rate = one.rates[name];
      const values = valuesOf(one.group); // the columns are named in the table
      figure.append(draw("text", { x: 116, y: y + 4, "text-anchor": "end" }, draw("title", {}, one.group), clipped(values, 18)));
      figure.append(draw("line", { class: "grid", x1: x(0), x2: x(1), y1: y, y2: y }));
      if (!rate) return;
      if (rate[1] !== null) figure.append(draw("line", { class: "ink", x1: x(rate[1]), x2: x(rate[2]), y1: y, y2: y }));
      figure.append(draw("circle", { class: "f1", cx: x(rate[0]), cy: y, r: 4 }));
      figure.append(draw("text", { x: WIDE - 36, y: y + 4 }, shown(rate[0])));
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
      el("p", { class: "muted" }, this.hello.models > 1 ? `Scores of model ${model + 1} of ${this.hello.models}.` : `Vertical lines are thresholds${this.hello.decision === "fixed" ? "" : "; thicker ones are drawn more often"}.`));
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
    const cut = (value) => (typeof value === "number" ? shown(value) : value), counts = new Map();
    const ruleOf = ({ model }) => { // a model may have several rules
      counts.set(model, (counts.get(model) ?? 0) + 1);
      return members.filter((one) => one.model === model).length > 1 ? `${model}, rule ${counts.get(model)}` : model;
    };
    this.panels.mixture.body.replaceChildren(table("Mixture, as a table", ["model", "share", ...(isRules ? groups : [])],
      members.map((one) => el("tr", {}, el("th", { scope: "row" }, isRules ? ruleOf(one) : one.model), el("td", {}, percent(one.share)),
        (one.thresholds || []).map((value, at) => el("td", {}, one.lower ? `${cut(one.lower[at])} to ${cut(value)}` : cut(value)))))),
      el("p", { class: "muted" }, isRules ? `Each rule decides the positive class where the score is above the threshold of the group.${members.some((one) => one.lower) ? " Between the lower and the upper threshold a person decides." : ""}` : "The share is the part of the rows that a model decides about."));
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
      figure.append(draw("line", { class: "ink", x1: x(Math.max(this.setting.alpha, view.alphas[0])), x2: x(Math.max(this.setting.alpha, view.alphas[0])), y1: TOP, y2: HIGH - BOTTOM }));
    }
    body.replaceChildren(figure, key([["s1", "this mixture"], ["s2 dashed", "plain training"]]),
      el("p", { class: "muted" }, `${best.length ? "Dots: the best mixture for that tail. " : ""}${view.rows === "held_out" ? "On held-out rows." : "On the selection rows."}`));
  }

  paintFrontier(view) {
    const body = this.panels.frontier.body, points = view.points || [];
    if (view.unmet || !points.length) { body.replaceChildren(el("p", {}, "No mixture meets the other goals.")); return; }
    const here = view.here || [null, null];
    const { figure, x, y } = frame(`Lowest ${view.y} for each bound of ${view.x}`, [...points.map((one) => one[0]), here[0]], [...points.map((one) => one[1]), here[1]], {
      xName: view.x === "error_rate" ? "error rate" : view.x, yName: view.y === "tail" ? "loss of the tail" : view.y });
    figure.append(line(x, y, points, "s1"));
    if (here[0] !== null && here[1] !== null) figure.append(draw("circle", { class: "mark", cx: x(here[0]), cy: y(here[1]), r: 4.5 }));
    body.replaceChildren(figure, el("p", { class: "muted" }, `The dot is the current setting. All other goals are kept.${this.setting.confidence === null ? "" : " The line is without margins."}`),
      this.axis("x") === "error" && this.axis("y") === "tail" && this.setting.alpha === 1 ? el("p", {}, "With alpha = 1 the loss of the tail is the error rate: choose another quantity above.") : "");
  }

  paintSegments(view) {
    const body = this.panels.segments.body, segments = view.segments || [];
    if (!segments.length) { body.replaceChildren(el("p", { class: "muted" }, `Not shown: ${view.why || "no mixture meets the goals"}.`)); return; }
    body.replaceChildren(el("ul", {}, segments.map((one) => el("li", {}, `${one.text}: ${shown(one.lift, 1)} times as often in the tail as other rows; ${percent(one.part)} of the tail (${one.rows.toLocaleString("en")} rows)`))));
  }

  paintPins() {
    const body = this.panels.pins.body;
    this.panels.pins.box.hidden = !this.pins.length;
    if (!this.pins.length || !this.answer) return;
    const all = [{ name: "now", answer: this.answer }, ...this.pins.map((pin, place) => ({ name: `pin ${place + 1}`, ...pin }))];
    const rows = "held_out" in this.answer.losses ? "held_out" : "choice";
    const lefts = [...new Set(all.flatMap((one) => one.answer.goals.map((goal) => `${goal.left} ${goal.sign}`)))];
    const people = (one) => this.people(one.answer.rates.groups[0]), { positive } = this.hello.classes;
    const lines = [
      ...(all[0].answer.rates.groups.length ? [[`decided “${positive}”, of 1,000`, (one) => people(one).positive ?? "–"], ["wrong decisions, of 1,000", (one) => people(one).all ?? "–"]] : []),
      ["tail", (one) => shown(one.answer.setting.alpha)], ["budget", (one) => shown(one.answer.setting.budget)],
      ...(this.hello.why_no_margins ? [] : [["confidence", (one) => (one.answer.setting.confidence === null ? "none" : fewDigits(one.answer.setting.confidence))]]),
      ["objective", (one) => shown(one.answer.value)],
      ["average loss", (one) => shown(one.answer.losses[rows].mean)],
      ...(this.setting.alpha === null ? [] : [["loss of the tail", (one) => shown(one.answer.losses[rows].tail)]]),
      ...lefts.map((left) => [left, (one) => {
        const goal = one.answer.goals.find((other) => `${other.left} ${other.sign}` === left && other.on);
        return goal ? `${shown(goal.bound)}: ${shown(goal.held_out?.estimate ?? goal.choice.value)}` : "–";
      }]),
    ];
    body.replaceChildren(table("Pinned settings, as a table", ["setting", ...all.map((one) => one.name)], [
      ...lines.map(([name, cell]) => el("tr", {}, el("th", { scope: "row" }, name), all.map((one) => el("td", {}, cell(one))))),
      el("tr", {}, el("th", { scope: "row" }, "actions"), all.map((one, place) => el("td", {}, place ? [
        el("button", { type: "button", "aria-label": `Go to ${one.name}`, onclick: () => this.go(structuredClone(one.setting)) }, "Go"), " ",
        el("button", { type: "button", "aria-label": `Remove ${one.name}`, onclick: () => { this.pins.splice(place - 1, 1); this.keep(); this.paintPins(); this.paintHistory(); } }, "Remove")] : ""))),
    ]    ), el("p", { class: "muted" }, `Each goal shows its bound and then its value ${rows === "held_out" ? "on held-out rows" : "on the selection rows"}.`));
  }
}

function plain(setting) {
  return { ...setting, goals: setting.goals.map(({ text, bound, on }) => ({ text, bound, on })) };
}

// ---------------------------------------------------------------- connections

class SocketTransport {
  constructor(place) {
    this.place = new URL(place, location.href);
    this.place.protocol = location.protocol === "https:" ? "wss:" : "ws:";
    this.place.hash = "";
    this.waits = 300;
  }

  listen(receive, say) {
    this.receive = receive;
    this.say = say;
    this.open();
    addEventListener("hashchange", () => { if (location.hash !== this.written) this.arrived?.(); });
  }

  open() {
    this.socket = new WebSocket(this.place);
    this.socket.addEventListener("message", (event) => { this.waits = 300; this.receive(event.data); });
    this.socket.addEventListener("close", (event) => {
      this.say(event.reason || "The server does not answer. Is counterpoise explore still running? Trying again.");
      setTimeout(() => this.open(), this.waits);
      this.waits = Math.min(2 * this.waits, 5000);
    });
  }

  send(text) { if (this.socket.readyState === WebSocket.OPEN) this.socket.send(text); }
  onState(arrived) { this.arrived = arrived; }

  readState() { return decodeURIComponent(location.hash.slice(1)); }

  writeState(text) {
    history.replaceState(null, "", `#${encodeURIComponent(text)}`);
    this.written = location.hash;
  }
}

class WidgetTransport {
  constructor(model) { this.model = model; }

  listen(receive) {
    this.model.on("msg:custom", (content) => receive(content.text));
    this.model.send({ text: "hello" });
  }

  send(text) { this.model.send({ text }); }
  readState() { return this.model.get("state"); }
  writeState(text) { this.model.set("state", text); this.model.save_changes(); }
  onState(arrived) { this.model.on("change:state", () => arrived()); }
}

// The settings that a file has results for. All have the same goals: a goal is known by its text, whatever its bound.
class Grid {
  constructor({ hello, answers }) {
    this.answers = answers;
    this.settings = answers.map(({ setting }) => ({ ...setting, goals: setting.goals.map(({ bound, on }, place) => ({ ...hello.start.goals[place], bound, on })) }));
    const spread = (of) => [...new Set(this.settings.map(of))].sort((one, other) => one - other);
    this.alphas = hello.start.alpha === null ? null : spread((one) => one.alpha);
    this.bounds = hello.start.goals.map((_, place) => spread((one) => one.goals[place].bound));
    this.switches = hello.start.goals.map((_, place) => this.settings.some((one) => !one.goals[place].on));
    this.texts = answers.flatMap(({ setting }) => setting.goals.map(({ text, bound }, place) => ({ text, bound, place })));
  }

  own(setting) { // the equal setting of the file; null where there is none
    const goals = [];
    for (const [at, { text, bound, on }] of setting.goals.entries()) {
      const known = this.texts.filter((one) => one.text === text && !goals[one.place]);
      const match = known.find((one) => one.place === at) ?? known[0];
      if (!match) return null;
      goals[match.place] = { bound: bound ?? match.bound, on };
    }
    if (setting.goals.length !== this.bounds.length) return null;
    return this.settings.find((one) => same([one.by, one.budget, one.defer, one.confidence], [setting.by, setting.budget, setting.defer, setting.confidence]) &&
      this.differences(one, { ...setting, goals }).length === 0) ?? null;
  }

  answer(setting) { return this.answers[this.settings.indexOf(this.own(setting))]; }

  ways(setting) { // for each goal the nearest bound that this file has a result for, all else kept
    const own = this.own(setting), { setting: asked } = this.answer(setting);
    return own.goals.flatMap((goal, place) => {
      const met = this.answers.filter((one, at) => one.kind === "answer" && this.settings[at].goals[place].on && same(this.differences(this.settings[at], own), [place]));
      if (!met.length) return [];
      const { text, bound } = met[nearestPlace(met.map((one) => one.setting.goals[place].bound), goal.bound)].setting.goals[place];
      return [[{ goal: asked.goals[place].text, instead: text, bound }]];
    });
  }

  differences(one, other) { // where two settings differ: the tail as -1, goals by their places; the bound of a goal that is off does not count
    const boundOf = (goal) => (goal.on ? goal.bound : null);
    const goals = one.goals.map((goal, place) => (boundOf(goal) === boundOf(other.goals[place]) ? null : place));
    return [one.alpha === other.alpha ? null : -1, ...goals].filter((place) => place !== null);
  }

  nearest(wanted, before) { // the setting with what was changed, and as much else of what is wanted as there is
    const changed = this.differences(wanted, before);
    const fits = this.settings.map((one) => ({ one, apart: this.differences(one, wanted) })).filter(({ apart }) => !apart.some((place) => changed.includes(place)));
    if (!fits.length) return { setting: before, moved: [] };
    const { one, apart } = fits.reduce((best, other) => (other.apart.length < best.apart.length ? other : best));
    return { setting: one, moved: apart.map((place) => (place < 0 ? "the tail" : goalWords(wanted.goals[place]))) };
  }
}

// A file without a server: it has the results for a grid of settings.
class StaticTransport {
  constructor(kept) {
    this.kept = kept;
    this.grid = new Grid(kept);
  }

  listen(receive) {
    this.receive = receive;
    addEventListener("hashchange", () => this.arrived?.());
    setTimeout(() => receive(JSON.stringify(this.kept.hello)));
  }

  send(text) {
    const message = JSON.parse(text), { seq, type, view } = message, answer = message.setting && this.grid.answer(message.setting);
    const reply = (words) => setTimeout(() => this.receive(JSON.stringify({ seq, ...words })));
    if (!answer) reply({ type: "refused", message: "This file has no result for this setting." });
    else if (type === "view") reply({ type, view, segments: [], points: [], ...answer.views?.[view] });
    else reply({ type: "answer", exact: message.exact, ...answer, ...(answer.kind === "answer" ? {} : { ways: this.grid.ways(message.setting) }) });
  }

  onState(arrived) { this.arrived = arrived; }
  readState() { return decodeURIComponent(location.hash.slice(1)); }
  writeState(text) { try { history.replaceState(null, "", `#${encodeURIComponent(text)}`); } catch { /* some browsers refuse it for files */ } }
}

export function mount(root, transport) { return new Explorer(root, transport); }

export default {
  render({ model, el: root }) {
    // JupyterLab would take the arrow keys of a slider for its own
    const box = el("div", { class: "cp-explorer", onkeydown: (event) => event.stopPropagation() }, el("p", { role: "status" }, "Connecting to the models."));
    root.append(box);
    mount(box, new WidgetTransport(model));
  },
};

const page = globalThis.document?.querySelector(".cp-explorer[data-socket], .cp-explorer[data-static]");
if (page) {
  const kept = page.dataset.static ? JSON.parse(document.getElementById(page.dataset.static).textContent) : null;
  mount(page, kept ? new StaticTransport(kept) : new SocketTransport(page.dataset.socket));
}

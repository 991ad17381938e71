"use strict";

// Reads the plans of one cluster as server-sent events, by fetch and not by EventSource, which sends no token.
const MOST_JOBS = 200, RETRY_MS = 2000, LOOK_MS = 2000;
const at = (id) => document.getElementById(id);
let looking = false, lookAgain = false;
let reading = null;
let chosen = "", waitingNow = null, planNow = null, order = null, waitingOrder = null, seeking = 0;

function headers() {
  const token = at("token").value;
  return token ? { Authorization: "Bearer " + token } : {};
}

function say(text, bad) {
  at("state").textContent = text;
  at("state").className = bad ? "bad" : "";
}

function cells(row, values) {
  for (const value of values) {
    const cell = row.insertCell();
    if (value instanceof Node) cell.append(value); else cell.textContent = value;
  }
}

function number(value) {
  if (value === null || value === undefined) return "none";
  if (value !== 0 && Math.abs(value) < 1e-4) return Number(value).toExponential(1);
  return Number(value).toLocaleString("en", { maximumSignificantDigits: 5 });
}

// Seconds in the unit that people would take.
function duration(seconds) {
  if (!seconds) return "0 s";
  const units = [[86400, "days"], [3600, "h"], [60, "min"], [1, "s"], [1e-3, "ms"], [1e-6, "µs"]];
  const [size, name] = units.find(([each]) => seconds >= (each > 1 ? 1.5 : 0.9995) * each || each === 1e-6);
  return Number(seconds / size).toLocaleString("en", { maximumSignificantDigits: 3 }) + " " + name;
}

function percent(share) {
  if (share === null || share === undefined) return "none";
  if (share !== 0 && share < 1e-6) return "< 0.0001%";
  return Number(100 * share).toLocaleString("en", { maximumSignificantDigits: 2 }) + "%";
}

function showFigures(plan) {
  const figures = {
    "plan": plan.version + ", after delta " + plan.sequence, "status": (plan.status || "none yet") + (plan.failure ? ": " + plan.failure : ""),
    "jobs": number(plan.jobs), "running": number(plan.running), "objective": number(plan.objective),
    "bound": number(plan.bound), "gap": percent(plan.gap), "round": duration(plan.round_s || 0),
  };
  at("figures").replaceChildren();
  for (const [name, value] of Object.entries(figures)) {
    const term = document.createElement("dt"), told = document.createElement("dd");
    term.textContent = name;
    told.textContent = value;
    at("figures").append(term, told);
  }
}

function showGpus(plan) {
  at("gpus").replaceChildren();
  for (const [kind, count] of Object.entries(plan.capacity || {})) {
    const used = (plan.used || {})[kind] || 0, bar = document.createElement("progress");
    bar.max = Math.max(count, 1);
    bar.value = used;
    bar.title = (count ? Math.round(100 * used / count) : 0) + "%";
    cells(at("gpus").insertRow(), [kind, number(used), number(count), bar, number((plan.prices || {})[kind])]);
  }
}

const root = (cluster) => "/v1/clusters/" + encodeURIComponent(cluster);

async function ask(path) {
  const answer = await fetch(path, { headers: headers() }), told = await answer.json();
  if (!answer.ok) throw new Error(told.detail + (told.fix ? " (" + told.fix + ")" : ""));
  return told;
}

// A job's name, as a button that explains it.
function named(job) {
  const link = document.createElement("a");
  link.textContent = job;
  link.href = root(chosen) + "/explain/" + encodeURIComponent(job).replaceAll("%2F", "/");
  link.addEventListener("click", (event) => { event.preventDefault(); answered(job, explained, link.href); });
  return link;
}

function explained(told) {
  const of = (option) => Object.entries(option.usage).map(([kind, gpus]) => gpus + " " + kind).join(", ") || "nothing";
  const prices = Object.entries(told.prices).map(([kind, price]) => kind + " " + number(price)).join(", ");
  const lines = told.options.slice(0, 8).map((option) => of(option) + ": given " + number(option.value) + ", worth "
    + number(option.cost) + ", charge " + number(option.charge) + ", loss " + number(option.loss));
  return [told.request, "prices: " + prices, ...lines].join("\n");
}

async function answered(about, how, path) {
  at("answer").textContent = about + " ...";
  try {
    at("answer").textContent = how(await ask(path));
  } catch (error) {
    at("answer").textContent = about + ": " + error.message;
  }
}

function draw(place, groups) {
  const highest = Math.max(0, ...groups.flat().map(([value]) => value)), most = highest || 1, width = 600 / Math.max(groups.length, 60);
  at(place).replaceChildren();
  groups.forEach((group, k) => group.forEach(([value, kind]) => {
    const bar = document.createElementNS("http://www.w3.org/2000/svg", "rect"), height = 77 * value / most;
    const parts = { x: k * width, y: 80 - height, width: Math.max(width - 0.5, 0.5), height: height, class: kind };
    for (const [name, part] of Object.entries(parts)) bar.setAttribute(name, part);
    at(place).append(bar);
  }));
  return highest;
}

function showHistory(told) {
  const rows = told.points.map((point) => Object.fromEntries(told.fields.map((name, k) => [name, point[k]])));
  const last = rows[rows.length - 1] || { to_s: 0, used: 0, capacity: 0, waiting: 0 };
  const seconds = rows.length ? last.to_s - rows[0].from_s : 0;
  at("span").textContent = duration(seconds) + ", " + told.plans_a_point + (told.plans_a_point > 1 ? " plans a bar" : " plan a bar");
  const slowest = draw("rounds", rows.map((row) => [[row.slowest_round_s, "most"], [row.mean_round_s, "mean"]]));
  at("slowest").textContent = rows.length ? "slowest: " + duration(slowest) : "";
  draw("usage", rows.map((row) => [[row.capacity, "most"], [row.used, "mean"]]));
  at("used").textContent = "now " + number(last.used) + " of " + number(last.capacity);
  const longest = draw("queue", rows.map((row) => [[row.waiting, "mean"]]));
  at("queued").textContent = "now " + number(last.waiting) + ", most " + number(rows.length ? longest : 0);
}

function sought(place, words) {
  const wanted = at(place).value.toLowerCase();
  return !wanted || words.join(" ").toLowerCase().includes(wanted);
}

// When a job may start, as a word; what that assumes is the table's note.
function starts(why) {
  if (why.starts_in_s === null || why.starts_in_s === undefined) return "not known";
  return (why.starts_in_s ? "in " + duration(why.starts_in_s) : "now") + (why.backfills ? ", backfills" : "");
}

const compared = (a, b) => typeof a === "number" ? (a > b) - (a < b) : a.localeCompare(b);
const WAITING_KEYS = [(job) => job, (job, why) => why.reason, (job, why) => why.starts_in_s ?? Infinity];

function showWaiting(told) {
  waitingNow = told;
  at("waiting").replaceChildren();
  const rows = Object.entries(told.jobs);
  if (waitingOrder !== null) {
    const key = WAITING_KEYS[waitingOrder.column];
    rows.sort((a, b) => waitingOrder.sign * compared(key(...a), key(...b)));
  }
  for (const [job, why] of rows) {
    const more = document.createElement("button");
    more.textContent = "what if";
    more.addEventListener("click", () => { at("change").value = "add " + why.short + " " + why.gpu_type; at("change").focus(); });
    cells(at("waiting").insertRow(), [named(job), why.reason, starts(why), why.short ? more : ""]);
  }
  const left = told.found - rows.length;
  at("assumed").textContent = told.count ? "Starts are estimates: " + told.assumed + "." : "";
  at("more-waiting").textContent = left > 0 ? "and " + number(left) + " more: find them by name" : rows.length ? ""
    : told.count ? "none of " + number(told.count) + " waiting jobs is called so or waits for that" : "none";
}

// All waiting jobs are searched by the service, which sends no more than 200 at a time.
const waitingPath = () => root(chosen) + "/waiting?find=" + encodeURIComponent(at("seek-waiting").value);

async function seek() {
  const mine = ++seeking;
  await new Promise((resume) => setTimeout(resume, 150));
  if (mine !== seeking || !chosen) return;
  try {
    const told = await ask(waitingPath());
    if (mine === seeking) showWaiting(told);
  } catch (error) {
    say(error.message, true);
  }
}

// What is not in the stream of plans; one look at a time, and no more often than every LOOK_MS.
async function look() {
  if (looking) { lookAgain = true; return; }
  looking = true;
  try {
    const cluster = chosen, path = waitingPath(), [waiting, history] = await Promise.all([ask(path), ask(root(cluster) + "/history")]);
    if (cluster === chosen) { if (path === waitingPath()) showWaiting(waiting); showHistory(history); }
  } catch (error) {
    say(error.message, true);
  }
  setTimeout(() => { looking = false; if (lookAgain) { lookAgain = false; look(); } }, LOOK_MS);
}

function showJobs(plan) {
  const rows = Object.entries(plan.allocations).map(([job, given]) => [job, given.gpu_type, given.gpus, Object.keys(given.nodes).join(", ")]);
  const running = rows.filter((row) => sought("seek-jobs", row));
  if (order !== null) running.sort((a, b) => order.sign * compared(a[order.column], b[order.column]));
  at("jobs").replaceChildren();
  for (const [job, ...rest] of running.slice(0, MOST_JOBS)) cells(at("jobs").insertRow(), [named(job), ...rest]);
  at("more").textContent = running.length > MOST_JOBS ? "and " + number(running.length - MOST_JOBS) + " more: find them by name"
    : rows.length && !running.length ? "none of " + number(rows.length) + " running jobs is called so or runs there" : "";
}

function show(plan) {
  planNow = plan;
  showFigures(plan);
  showGpus(plan);
  showJobs(plan);
  at("next").textContent = plan.jobs ? "" : "This cluster has no job yet: send one with POST " + root(chosen) + "/deltas, "
    + "{\"add_jobs\": [{\"id\": \"first\"}]}. Nodes come the same way.";
  say("live");
  look();
}

async function read(cluster, ending) {
  const answer = await fetch(root(cluster) + "/plan/stream", { headers: headers(), signal: ending });
  if (!answer.ok) throw new Error(answer.status === 401 ? "a token is needed" : "answer " + answer.status);
  const parts = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { value, done } = await parts.read();
    if (done) throw new Error("the service ended the stream");
    text += value;
    const events = text.split("\n\n");
    text = events.pop();
    const plans = events.filter((event) => event.includes("event: plan"));
    if (plans.length) {
      const data = plans[plans.length - 1].split("\n").find((line) => line.startsWith("data: "));
      show(JSON.parse(data.slice(6)));
    }
  }
}

async function list() {
  const answer = await fetch("/v1/clusters", { headers: headers() });
  if (!answer.ok) throw new Error(answer.status === 401 ? "a token is needed" : "answer " + answer.status);
  const names = (await answer.json()).clusters.map((cluster) => cluster.id);
  if (!names.includes(chosen)) chosen = names[0] || "";
  at("cluster").replaceChildren(...names.map((name) => new Option(name, name, false, name === chosen)));
  if (!chosen) throw new Error("there is no cluster yet: make one with PUT /v1/clusters/NAME");
}

async function run() {
  const ending = new AbortController();
  if (reading) reading.abort();
  reading = ending;
  while (!ending.signal.aborted) {
    try {
      await list();
      await read(chosen, ending.signal);
    } catch (error) {
      if (ending.signal.aborted) return;
      say(error.message, true);
    }
    await new Promise((resume) => setTimeout(resume, RETRY_MS));
  }
}

at("cluster").addEventListener("change", () => { chosen = at("cluster").value; run(); });
at("token").addEventListener("change", run);
at("seek-waiting").addEventListener("input", seek);
at("seek-jobs").addEventListener("input", () => { if (planNow) showJobs(planNow); });
// A column's name orders its table, and once more the other way round.
for (const head of document.querySelectorAll("th[data-sort]")) {
  const sort = () => {
    const turned = head.ariaSort === "ascending", waits = head.dataset.table === "waiting";
    const asked = { column: Number(head.dataset.sort), sign: turned ? -1 : 1 };
    for (const other of head.parentNode.cells) other.ariaSort = null;
    head.ariaSort = turned ? "descending" : "ascending";
    if (waits) waitingOrder = asked; else order = asked;
    if (waits && waitingNow) showWaiting(waitingNow);
    if (!waits && planNow) showJobs(planNow);
  };
  head.addEventListener("click", sort);
  head.addEventListener("keydown", (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); sort(); } });
}
at("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  const text = at("change").value;
  answered(text, (told) => told.text, root(chosen) + "/what-if?change=" + encodeURIComponent(text));
});
run();

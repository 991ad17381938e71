"use strict";

// Reads the plans of one cluster as server-sent events, by fetch and not by EventSource, which sends no token.
const MOST_JOBS = 200, MOST_ROUNDS = 120, RETRY_MS = 2000;
const at = (id) => document.getElementById(id);
const rounds = [];
let reading = null;
let chosen = "";

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

function showFigures(plan) {
  const figures = {
    "plan": plan.version + ", after delta " + plan.sequence, "status": (plan.status || "none yet") + (plan.failure ? ": " + plan.failure : ""),
    "jobs": number(plan.jobs), "running": number(plan.running), "objective": number(plan.objective),
    "bound": number(plan.bound), "gap": number(plan.gap), "round": number(1000 * (plan.round_s || 0)) + " ms",
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

function showRounds(plan) {
  if (plan.version && (!rounds.length || rounds[rounds.length - 1].version !== plan.version)) {
    rounds.push({ version: plan.version, seconds: plan.round_s || 0 });
    if (rounds.length > MOST_ROUNDS) rounds.shift();
  }
  const most = Math.max(1e-6, ...rounds.map((round) => round.seconds)), width = 600 / MOST_ROUNDS;
  at("rounds").replaceChildren();
  rounds.forEach((round, k) => {
    const bar = document.createElementNS("http://www.w3.org/2000/svg", "rect"), height = 115 * round.seconds / most;
    const places = { x: k * width, y: 120 - height, width: width - 1, height: height };
    for (const [name, value] of Object.entries(places)) bar.setAttribute(name, value);
    at("rounds").append(bar);
  });
  at("slowest").textContent = rounds.length ? "slowest of the last " + rounds.length + ": " + number(1000 * most) + " ms" : "";
}

function showJobs(plan) {
  const running = Object.entries(plan.allocations);
  at("jobs").replaceChildren();
  for (const [job, given] of running.slice(0, MOST_JOBS)) {
    cells(at("jobs").insertRow(), [job, given.gpu_type, given.gpus, Object.keys(given.nodes).join(", ")]);
  }
  at("more").textContent = running.length > MOST_JOBS ? "and " + number(running.length - MOST_JOBS) + " more" : "";
}

function show(plan) {
  showFigures(plan);
  showGpus(plan);
  showRounds(plan);
  showJobs(plan);
  say("live");
}

async function read(cluster, ending) {
  const answer = await fetch("/v1/clusters/" + encodeURIComponent(cluster) + "/plan/stream", { headers: headers(), signal: ending });
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
  if (!chosen) throw new Error("there is no cluster yet");
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

at("cluster").addEventListener("change", () => { chosen = at("cluster").value; rounds.length = 0; run(); });
at("token").addEventListener("change", run);
run();

// What happens, live: one stream for the whole page. It resumes where it was, and says when it can't.
import { signal, batch, computed } from "./core.js";
import { get, loadSession, signedIn } from "./api.js";

/** "connecting", "live" or "lost". */
export const connection = signal("connecting");
/** Grows whenever lists have to be loaded again. */
export const generation = signal(0);
/** Approval requests and questions that wait for a person, in the order in which they are shown. */
export const waiting = signal([]);
export const approvals = computed(() => waiting.value.filter((it) => it.request));
/** How requests ended that were shown here: by call. */
export const answered = signal({});
/** Running calls by id: {run, call, tool, text, since, output}. */
export const running = signal({});
/** Counts of what happened, by kind of thing, so that views know when to load again. */
export const ticks = signal({ runs: 0, changes: 0, processes: 0, queue: 0, inbox: 0 });

const listeners = new Set();
const OUTPUT_KEPT = 16_000;
const ANSWERS_KEPT = 100;

/** What each request was about: by call. A request is gone from the queue before its answer is told. */
const asked = new Map();

/** Calls back for each batch of live items; returns how to stop. */
export function listen(callback) {
  listeners.add(callback);
  return () => listeners.delete(callback);
}

let source = null;
let queued = [];
let isScheduled = false;
let retry = 0;

/** How often lists are loaded again at most: a busy run changes them many times a second. */
const TICK_MS = 700;
const due = new Set();
let ticked = 0;
let tickTimer = 0;

function tick(...names) {
  for (const name of names) due.add(name);
  if (tickTimer || !due.size) return;
  tickTimer = setTimeout(() => {
    tickTimer = 0;
    ticked = performance.now();
    const next = { ...ticks.value };
    for (const name of due) next[name] += 1;
    due.clear();
    ticks.value = next;
  }, Math.max(0, ticked + TICK_MS - performance.now()));
}

export async function loadQueue() {
  try {
    const [requests, open] = await Promise.all([get("/v1/approvals"), get("/v1/questions")]);
    for (const { request, effects } of requests.approvals) asked.set(request.tool_call_id, { tool: request.tool, what: effects[0] ?? "" });
    for (const { question } of open.questions) asked.set(question.tool_call_id, { tool: "ask", what: question.question });
    for (const call of [...asked.keys()].slice(0, -ANSWERS_KEPT)) asked.delete(call);
    // New ones are added below, so that what somebody reads stays where it is.
    const place = new Map(waiting.value.map((it, index) => [it.id, index]));
    const order = (a, b) => (place.get(a.id) ?? Infinity) - (place.get(b.id) ?? Infinity) || (a.asked < b.asked ? -1 : 1);
    waiting.value = [...requests.approvals, ...open.questions].sort(order);
  } catch {
    // The connection's state says so already.
  }
}

function take(items) {
  const calls = { ...running.value };
  const ends = { ...answered.value };
  const changed = new Set();
  for (const item of items) {
    const known = calls[item.call];
    switch (item.kind) {
      case "tool_call.started":
        calls[item.call] = { run: item.run, call: item.call, tool: item.tool, text: item.text, since: item.time, output: known?.output ?? "", turn: item.turn };
        changed.add("runs");
        break;
      case "approval_required":
        calls[item.call] = { ...(known ?? { run: item.run, call: item.call, text: item.text, since: item.time, output: "" }), tool: item.tool, waiting: true };
        break;
      case "question_asked":
        if (known) calls[item.call] = { ...known, waiting: true };
        break;
      case "approval_granted":
      case "approval_denied":
      case "question_answered":
        ends[item.call] = { kind: item.kind, by: item.by, scope: item.scope, text: item.text, time: item.time, run: item.run, ...(asked.get(item.call) ?? { tool: known?.tool, what: known?.text }) };
        if (known) calls[item.call] = { ...known, waiting: false };
        break;
      case "tool_call.completed":
      case "tool_call.failed":
        delete calls[item.call];
        changed.add("runs");
        if (item.changed) changed.add("changes");
        break;
      case "files.changing":
        changed.add("changes");
        break;
      case "process.output":
        if (item.call && known) calls[item.call] = { ...known, output: (known.output + item.text).slice(-OUTPUT_KEPT) };
        break;
      case "queue.added":
      case "queue.removed":
        changed.add("queue");
        break;
      case "inbox.changed":
        changed.add("inbox");
        break;
      case "processes.changed":
      case "process.ended":
        changed.add("processes");
        break;
      case "run.started":
      case "run.ended":
      case "run.lost":
      case "agent.started":
      case "agent.ended":
        changed.add("runs");
        if (item.kind === "run.ended" || item.kind === "run.lost") for (const [id, call] of Object.entries(calls)) if (call.run === item.run) delete calls[id];
        break;
    }
  }
  batch(() => {
    running.value = calls;
    answered.value = Object.fromEntries(Object.entries(ends).slice(-ANSWERS_KEPT));
    if (changed.size) tick(...changed);
  });
  for (const listener of listeners) listener(items);
  if (changed.has("queue")) loadQueue();
}

function schedule(item) {
  queued.push(item);
  if (isScheduled) return;
  isScheduled = true;
  setTimeout(() => {
    isScheduled = false;
    const items = queued;
    queued = [];
    take(items);
  }, 60);
}

/** What is at work now, from the record: the stream only tells what happens from now on. */
async function loadRunning() {
  try {
    const { runs } = await get("/v1/runs?limit=30");
    const open = runs.filter((run) => run.at_work);
    const found = {};
    for (const run of open.slice(0, 12)) {
      const { rows } = await get(`/v1/runs/${encodeURIComponent(run.id)}/outline?filter=running&limit=50`);
      for (const row of rows) {
        found[row.id] = { run: run.id, call: row.id, tool: row.name, text: row.text, since: row.started, waiting: row.status === "waiting", output: running.value[row.id]?.output ?? "" };
      }
    }
    running.value = found;
  } catch {
    // The connection's state says so already.
  }
}

export function connect() {
  if (source) return;
  connection.value = "connecting";
  source = new EventSource("/v1/live");
  source.addEventListener("open", () => {
    retry = 0;
    connection.value = "live";
  });
  source.addEventListener("live", (event) => schedule(JSON.parse(event.data)));
  source.addEventListener("reset", () => {
    generation.value += 1;
    tick("runs", "changes", "processes", "queue", "inbox");
    loadQueue();
    loadRunning();
  });
  source.addEventListener("error", () => {
    connection.value = "lost";
    if (source?.readyState !== EventSource.CLOSED) return;
    // Refused: signed out, or the server is starting. Otherwise the browser itself tries again.
    disconnect();
    const wait = Math.min(5000, 300 * 2 ** retry++);
    setTimeout(async () => {
      try {
        await loadSession();
      } catch {
        // It isn't there yet.
      }
      if (signedIn.value !== null) connect();
    }, wait);
  });
}

export function disconnect() {
  source?.close();
  source = null;
  connection.value = "lost";
}

/** A hidden page gives its connection back after a while: browsers allow few to one server. */
let hiddenTimer = 0;
document.addEventListener("visibilitychange", () => {
  clearTimeout(hiddenTimer);
  const wantsNotices = localStorage.getItem("toolgate.notices") === "on";
  if (document.hidden && !wantsNotices) hiddenTimer = setTimeout(disconnect, 60_000);
  else if (!document.hidden && !source && signedIn.value) connect();
});

// Measures the page: `node bench.mjs PROGRAM [PHOENIX]`. Each figure is the median of several, on the machine as it is. Where the
// program of Arize Phoenix is named, the same run is opened there, too.
import { appendFileSync, mkdirSync, readFileSync } from "node:fs";
import { execFileSync, execSync, spawn } from "node:child_process";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { World, until } from "./world.mjs";

const [program, phoenix] = process.argv.slice(2);
const world = new World(program);
const median = (numbers) => [...numbers].sort((a, b) => a - b)[Math.floor(numbers.length / 2)];
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

/** The lines of a long run, as a record has them: a call that starts and ends, over and over. */
function lines(run, from, calls) {
  let text = "";
  for (let index = 0; index < calls; index++) {
    const [call, seq] = [`call_bench_${from + index}`, 2 + (from + index) * 2];
    const time = new Date(Date.UTC(2026, 0, 1) + (from + index) * 50).toISOString();
    const event = (kind, more, number) => JSON.stringify({ seq: number, prev: "0".repeat(64), time, run, tool_call_id: call, kind, ...more });
    text += `${event("tool_call.started", { tool: "read", args: { path: `src/file_${index % 97}.rs` }, effects: [] }, seq)}\n`;
    text += `${event("tool_call.completed", { duration_ms: 12, redacted: false, payload: { content: "x".repeat(80) } }, seq + 1)}\n`;
  }
  return text;
}

function longRun(calls) {
  const run = "run_01a1ffffffff7000800000000000000f";
  const directory = join(world.workspace, ".toolgate/runs", run);
  mkdirSync(directory, { recursive: true });
  const facts = { seq: 1, prev: "0".repeat(64), time: "2026-01-01T00:00:00Z", run, kind: "run.started", workspace: world.workspace, session: "bench", preset: "workspace", front_end: "http", version: "0" };
  const file = join(directory, "events.jsonl");
  appendFileSync(file, `${JSON.stringify(facts)}\n${lines(run, 0, calls)}`);
  return { run, file };
}

/** One figure, in the form that `cargo xtask bench` keeps. */
const figure = (what, value, unit, wanted) => console.log(`${what}: ${value} ${unit}   (wanted: ${wanted})`);
const load = () => execSync("cut -d' ' -f1-3 /proc/loadavg", { encoding: "utf8" }).trim();

const cpu = (pid) => {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1].split(" ");
  return (Number(fields[11]) + Number(fields[12])) * 10;
};

/** Opens a page as somebody does for the first time: what a cache would have isn't there. */
async function firstPaint() {
  const seen = [];
  for (let index = 0; index < 5; index++) {
    const context = await world.browser.newContext();
    const page = await context.newPage();
    let bytes = 0;
    const session = await context.newCDPSession(page);
    await session.send("Network.enable");
    session.on("Network.loadingFinished", (event) => (bytes += event.encodedDataLength));
    const link = world.link();
    const began = performance.now();
    await page.goto(link);
    await page.getByRole("heading", { name: "Last runs" }).waitFor();
    seen.push({ ms: performance.now() - began, bytes });
    await context.close();
  }
  figure("console: first useful paint, sign-in included", median(seen.map((it) => it.ms)).toFixed(0), "ms", "at most 1000 ms");
  figure("console: bytes until then", (median(seen.map((it) => it.bytes)) / 1000).toFixed(1), "KB", "at most 100 KB");
}

/** The times of frames while a list is scrolled, sorted. */
const scrolled = (page, selector) =>
  page.evaluate(async (selector) => {
    const box = document.querySelector(selector);
    const times = [];
    let before = performance.now();
    for (let step = 0; step < 120; step++) {
      box.scrollTop += 1200;
      await new Promise(requestAnimationFrame);
      const now = performance.now();
      times.push(now - before);
      before = now;
    }
    return times.sort((a, b) => a - b);
  }, selector);

async function heap(page) {
  const session = await page.context().newCDPSession(page);
  await session.send("HeapProfiler.collectGarbage");
  await session.send("HeapProfiler.collectGarbage");
  const { usedSize } = await session.send("Runtime.getHeapUsage");
  return usedSize / 1e6;
}

async function openRun(run, calls) {
  const page = await world.page();
  const began = performance.now();
  await page.goto(`${world.url}/#/run/${run}`);
  await page.locator(".wrow", { hasText: "file_0.rs" }).first().waitFor();
  figure(`console: a run of ${calls.toLocaleString("en")} calls, first window`, (performance.now() - began).toFixed(0), "ms", "at most 1000 ms");
  return page;
}

async function append(page, file, run, calls) {
  const appended = [];
  for (let index = 0; index < 5; index++) {
    const began = performance.now();
    appendFileSync(file, lines(run, calls, 500));
    calls += 500;
    await page.getByText(`${new Intl.NumberFormat("en-GB").format(calls)} calls`).waitFor();
    appended.push(performance.now() - began);
  }
  figure("console: 1,000 events appended, until the page shows them", median(appended).toFixed(0), "ms", "at most 1000 ms");
  return calls;
}

/** An hour of a busy run: five calls a second, which come sixty times as fast. */
async function busyHour(page, file, run, calls) {
  const before = await heap(page);
  for (let minute = 0; minute < 60; minute++) {
    for (let part = 0; part < 6; part++) {
      appendFileSync(file, lines(run, calls, 50));
      calls += 50;
      await sleep(150);
    }
  }
  await page.getByText(`${new Intl.NumberFormat("en-GB").format(calls)} calls`).waitFor();
  await sleep(1000);
  const after = await heap(page);
  figure("console: memory of the page at first", before.toFixed(1), "MB", "at most 20 MB");
  figure("console: memory of the page after an hour of 18,000 calls", after.toFixed(1), "MB", "at most 30 MB");
  return calls;
}

/** What the server takes while so many pages follow, in percent of a core, at a hundred events a second. */
async function followers(file, run, calls) {
  const context = await world.browser.newContext();
  const one = await context.newPage();
  await one.goto(world.link());
  await one.locator(".connection.live").waitFor();
  const [cookie] = await context.cookies();
  const aborts = [];
  const follow = async () => {
    const abort = new AbortController();
    aborts.push(abort);
    const headers = { Cookie: `${cookie.name}=${cookie.value}` };
    const answer = await fetch(`${world.url}/v1/live`, { headers, signal: abort.signal });
    (async () => {
      let asked = 0;
      try {
        for await (const _ of answer.body) {
          // A page that shows what happens now loads the last runs again, as often as ours does.
          if (Date.now() - asked < 700) continue;
          asked = Date.now();
          fetch(`${world.url}/v1/runs?limit=8`, { headers, signal: abort.signal }).then((it) => it.text()).catch(() => {});
        }
      } catch {
        // It was aborted.
      }
    })();
  };
  const usage = async (seconds) => {
    const start = cpu(world.server.pid);
    const end = Date.now() + seconds * 1000;
    while (Date.now() < end) {
      appendFileSync(file, lines(run, calls, 10));
      calls += 10;
      await sleep(200);
    }
    return ((cpu(world.server.pid) - start) / (seconds * 1000)) * 100;
  };
  // What was appended before is indexed first.
  await sleep(5000);
  const alone = await usage(5);
  for (let index = 0; index < 49; index++) await follow();
  const all = await usage(10);
  figure("console: CPU of the server for one page, at 100 events a second", alone.toFixed(1), "% of a core", "at most 10 %");
  figure("console: CPU of the server for 50 pages, at 100 events a second", all.toFixed(1), "% of a core", "at most 50 %");
  aborts.forEach((abort) => abort.abort());
  await context.close();
}

/** The same run in Arize Phoenix: the first rows of its trace, and its page's memory. */
async function beside(calls) {
  const [directory, port] = [join(world.root, "phoenix"), 6106];
  const environment = { ...world.environment, PHOENIX_WORKING_DIR: directory, PHOENIX_HOST: "127.0.0.1", PHOENIX_PORT: String(port), PHOENIX_GRPC_PORT: String(port + 1), PHOENIX_TELEMETRY_ENABLED: "false" };
  mkdirSync(directory);
  const server = spawn(phoenix, ["serve"], { env: environment, stdio: "ignore" });
  const url = `http://127.0.0.1:${port}`;
  try {
    await until("Phoenix answers", () => fetch(url).then((answer) => answer.ok, () => false), 300_000);
    const send = (from, count) => execFileSync(join(dirname(phoenix), "python"), [join(dirname(fileURLToPath(import.meta.url)), "phoenix_spans.py"), url, String(from), String(count)]);
    send(0, calls);
    const projects = (await (await fetch(`${url}/v1/projects`)).json()).data;
    const page = await (await world.browser.newContext({ viewport: { width: 1280, height: 860 } })).newPage();
    page.setDefaultTimeout(300_000);
    let bytes = 0;
    const session = await page.context().newCDPSession(page);
    await session.send("Network.enable");
    session.on("Network.loadingFinished", (event) => (bytes += event.encodedDataLength));
    let began = performance.now();
    await page.goto(url);
    await page.getByText("default").first().waitFor();
    figure("Phoenix: first useful paint", (performance.now() - began).toFixed(0), "ms", "for comparison");
    figure("Phoenix: bytes until then", (bytes / 1000).toFixed(1), "KB", "for comparison");
    // It stores spans in the background, long after it took them.
    const sent = performance.now();
    await until("Phoenix has stored the run", async () => (await stored(url)) > calls, 900_000);
    figure(`Phoenix: until a run of ${calls.toLocaleString("en")} calls is stored`, ((performance.now() - sent) / 1000).toFixed(0), "s", "for comparison");
    began = performance.now();
    await page.goto(`${url}/projects/${projects[0].id}/traces/01a1ffffffffffff800000000000000f`);
    await page.getByText("read", { exact: true }).first().waitFor();
    figure(`Phoenix: a run of ${calls.toLocaleString("en")} calls, first rows`, (performance.now() - began).toFixed(0), "ms", "for comparison");
    figure(`Phoenix: memory of the page with ${calls.toLocaleString("en")} calls`, (await heap(page)).toFixed(1), "MB", "for comparison");
    await page.context().close();
  } finally {
    server.kill();
  }
}

/** How many spans Phoenix has. */
async function stored(url) {
  const body = JSON.stringify({ query: "{ projects { edges { node { recordCount } } } }" });
  const answer = await (await fetch(`${url}/graphql`, { method: "POST", headers: { "Content-Type": "application/json" }, body })).json();
  return answer.data.projects.edges[0]?.node.recordCount ?? 0;
}

try {
  console.log(`load of the machine before: ${load()}`);
  await world.start();
  await world.launch();
  await firstPaint();
  let calls = 20_000;
  const { run, file } = longRun(calls);
  const page = await openRun(run, calls);
  const frames = await scrolled(page, ".windowed");
  figure("console: a frame while a run of 20,000 calls is scrolled", frames[60].toFixed(1), "ms", "at most 34 ms");
  console.log(`95 % of the frames below ${frames[114].toFixed(1)} ms`);
  calls = await append(page, file, run, calls);
  calls = await busyHour(page, file, run, calls);
  // 50,000 calls are 100,000 events.
  appendFileSync(file, lines(run, calls, 50_000 - calls));
  calls = 50_000;
  await page.getByText("50,000 calls").waitFor();
  const more = await scrolled(page, ".windowed");
  figure("console: a frame while a run of 100,000 events is scrolled", more[60].toFixed(1), "ms", "at most 34 ms");
  await page.context().close();
  await followers(file, run, calls);
  if (phoenix) await beside(20_000);
  console.log(`load of the machine after: ${load()}`);
} finally {
  await world.close();
}

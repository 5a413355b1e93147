// Measures the page: `node bench.mjs PROGRAM`. Each figure is the median of several, on the machine as it is.
import { appendFileSync, mkdirSync, readFileSync } from "node:fs";
import { execSync } from "node:child_process";
import { join } from "node:path";
import { World } from "./world.mjs";

const [program] = process.argv.slice(2);
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

const cpu = (pid) => {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1].split(" ");
  return (Number(fields[11]) + Number(fields[12])) * 10;
};

try {
  await world.start();
  await world.launch();
  const first = [];
  for (let index = 0; index < 5; index++) {
    const context = await world.browser.newContext();
    const page = await context.newPage();
    let bytes = 0;
    const session = await context.newCDPSession(page);
    await session.send("Network.enable");
    session.on("Network.loadingFinished", (event) => (bytes += event.encodedDataLength));
    const began = performance.now();
    await page.goto(world.link());
    await page.getByRole("heading", { name: "Last runs" }).waitFor();
    first.push({ ms: performance.now() - began, bytes });
    await context.close();
  }
  console.log(`first useful paint, sign-in included: ${median(first.map((it) => it.ms)).toFixed(0)} ms, ${(median(first.map((it) => it.bytes)) / 1000).toFixed(1)} KB`);

  const { run, file } = longRun(20_000);
  const page = await world.page();
  let began = performance.now();
  await page.goto(`${world.url}/#/run/${run}`);
  await page.locator(".wrow", { hasText: "file_0.rs" }).first().waitFor();
  console.log(`a run of 20,000 calls, first window: ${(performance.now() - began).toFixed(0)} ms`);
  const frames = await page.evaluate(async () => {
    const box = document.querySelector(".windowed");
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
  });
  console.log(`scrolling it: ${frames[60].toFixed(1)} ms a frame, 95 % below ${frames[114].toFixed(1)} ms`);

  const appended = [];
  let calls = 20_000;
  for (let index = 0; index < 5; index++) {
    began = performance.now();
    appendFileSync(file, lines(run, calls, 500));
    calls += 500;
    const words = new Intl.NumberFormat("en-GB").format(calls);
    await page.getByText(`${words} calls`).waitFor();
    appended.push(performance.now() - began);
  }
  console.log(`1,000 events appended, until the page shows them: ${median(appended).toFixed(0)} ms`);

  const heap = async () => {
    const session = await page.context().newCDPSession(page);
    await session.send("HeapProfiler.collectGarbage");
    return (await page.evaluate(() => performance.memory.usedJSHeapSize)) / 1e6;
  };
  const before = await heap();
  for (let index = 0; index < 60; index++) {
    appendFileSync(file, lines(run, calls, 500));
    calls += 500;
    await sleep(150);
  }
  await sleep(1500);
  console.log(`memory of the page: ${before.toFixed(1)} MB, and ${(await heap()).toFixed(1)} MB after 60,000 more events`);
  await page.context().close();

  const context = await world.browser.newContext();
  const one = await context.newPage();
  await one.goto(world.link());
  await one.locator(".connection.live").waitFor();
  const [cookie] = await context.cookies();
  const aborts = [];
  const follow = async () => {
    const abort = new AbortController();
    aborts.push(abort);
    const answer = await fetch(`${world.url}/v1/live`, { headers: { Cookie: `${cookie.name}=${cookie.value}` }, signal: abort.signal });
    (async () => {
      try {
        for await (const _ of answer.body);
      } catch {
        // It was aborted.
      }
    })();
  };
  const usage = async (seconds) => {
    const start = cpu(world.server.pid);
    const until = Date.now() + seconds * 1000;
    while (Date.now() < until) {
      appendFileSync(file, lines(run, calls, 10));
      calls += 10;
      await sleep(200);
    }
    return ((cpu(world.server.pid) - start) / (seconds * 1000)) * 100;
  };
  const alone = await usage(5);
  for (let index = 0; index < 49; index++) await follow();
  console.log(`server at 100 events a second: ${alone.toFixed(1)} % of a core for one page, ${(await usage(5)).toFixed(1)} % for 50`);
  aborts.forEach((abort) => abort.abort());
  console.log(`load of the machine: ${execSync("cut -d' ' -f1-3 /proc/loadavg", { encoding: "utf8" }).trim()}`);
} finally {
  await world.close();
}

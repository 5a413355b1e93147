// Pictures of every view, in both themes and narrow: `node screenshots.mjs PROGRAM DIRECTORY`.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { World } from "./world.mjs";

const [program, directory] = process.argv.slice(2);
const world = new World(program);
mkdirSync(directory, { recursive: true });
try {
  await world.start();
  await world.launch();
  const agent = await world.session("fix-greeting");
  await agent.call("list", {});
  await agent.call("read", { path: "src/main.rs" });
  await agent.call("shell", { command: "ls -l && echo done && touch .envrc" });
  await agent.call("write", { path: "src/lib.rs", content: "pub fn greet() -> &'static str {\n    \"hello\"\n}\n" });
  await agent.call("read", { path: ".env" });
  await agent.call("shell", { command: "sleep 300", background: true });
  agent.call("shell", { command: "bash --norc", tty: true, background: true });
  agent.call("edit", { path: "src/main.rs", find: "hello", replace: "hello, world" });
  agent.call("delete", { path: "notes.md" });
  agent.call("ask", { question: "Which greeting do you prefer?", choices: [{ label: "Hello", description: "short" }, { label: "Good day" }] });
  await world.api("POST", "/v1/inbox", { task: "Tidy up the greeting and run the tests" });
  await new Promise((done) => setTimeout(done, 1500));
  const calls = (await world.api("GET", `/v1/runs/${agent.run}/outline?limit=100`)).json.rows;
  const written = calls.find((row) => row.name === "write");
  const processes = (await world.api("GET", "/v1/processes")).json.processes;
  const terminal = processes.find((it) => it.terminal) ?? processes[0];
  const views = {
    now: "#/now", approvals: "#/approvals", runs: "#/runs", run: `#/run/${agent.run}`, timeline: `#/run/${agent.run}?mode=timeline`,
    call: `#/run/${agent.run}/call/${written.id}`, changes: `#/changes?run=${agent.run}`, quarantine: "#/quarantine",
    processes: `#/processes/${terminal?.id ?? ""}`, policy: "#/policy", try: "#/policy?tab=try", replay: "#/policy?tab=replay",
    grants: "#/grants", tools: "#/tools", inbox: "#/inbox", doctor: "#/doctor", search: "#/search?q=main.rs",
  };
  for (const [name, options] of [
    ["dark", { colorScheme: "dark" }],
    ["light", { colorScheme: "light" }],
    ["narrow", { colorScheme: "dark", viewport: { width: 375, height: 780 } }],
  ]) {
    const page = await world.page(options);
    for (const [view, hash] of Object.entries(views)) {
      await page.goto(`${world.url}/${hash}`);
      await page.waitForTimeout(view === "doctor" ? 3500 : 900);
      await page.screenshot({ path: join(directory, `${view}-${name}.png`) });
      const wide = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth + 1);
      if (wide) console.log(`${view} (${name}) is wider than the screen`);
    }
    await page.context().close();
  }
  console.log(world.faults.length ? `faults:\n${[...new Set(world.faults)].join("\n")}` : "no faults");
} finally {
  await world.close();
}

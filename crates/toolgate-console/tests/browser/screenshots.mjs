// Pictures of every view, in both themes and narrow: `node screenshots.mjs PROGRAM DIRECTORY [HOME]`. Without HOME the workspace
// is a temporary directory, whose name is seen in the pictures.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { World, isTooWide, until } from "./world.mjs";

const [program, directory, root] = process.argv.slice(2);

/** What isn't a view: the help sheet, the menus, a denial, running output, a lost connection, and nobody signed in. */
async function states(page, name) {
  const shot = (what) => page.screenshot({ path: join(directory, `${what}-${name}.png`) });
  await page.goto(`${world.url}/#/now`);
  await page.getByRole("button", { name: /^Deny…/ }).first().click();
  await page.waitForTimeout(700);
  await shot("deny");
  await page.getByRole("button", { name: "Back" }).click();
  await page.locator(".card.running .output").first().scrollIntoViewIfNeeded();
  await page.waitForTimeout(600);
  await shot("running");
  await page.locator("h1").click();
  await page.keyboard.press("?");
  await page.waitForTimeout(300);
  await shot("help");
  await page.keyboard.press("Escape");
  if (await page.getByRole("button", { name: "Menu" }).isVisible()) {
    await page.getByRole("button", { name: "Menu" }).click();
    await shot("menu");
    await page.getByRole("link", { name: "Now" }).first().click();
  }
  await page.locator(".who summary").click();
  await shot("who");
  await page.locator(".who summary").click();
  await page.evaluate(() => fetch("/v1/console/session", { method: "DELETE", headers: { "X-Toolgate-Console": "1" } }));
  await page.reload();
  await page.getByText("Nobody is signed in").waitFor();
  await shot("signin");
}
const world = new World(program, { root, name: "shop-api" });
mkdirSync(directory, { recursive: true });
try {
  await world.start();
  await world.launch();
  world.write("src/cart.rs", `/// What the customer pays, in cents.
pub fn total(items: &[Item], discount: f64) -> u64 {
    let sum: f64 = items.iter().map(|item| item.price * item.count as f64).sum();
    (sum * (1.0 - discount)) as u64
}
`);
  for (const [name, text] of [["export", "The export has a header now."], ["slugs", "Slugs keep their umlauts."]]) {
    world.write(`${name}.toml`, `[[turns]]\ntext = "I look first."\ntokens = { input = 30400, output = 420 }\ncalls = [{ tool = "grep", args = { pattern = "fn" } }, { tool = "write", args = { path = "src/${name}.rs", content = "// ${name}\\n" } }]\n[[turns]]\ntext = "${text}"\ntokens = { input = 31900, output = 120 }\n`);
    world.run("run", name === "export" ? "Add a header line to the CSV export" : "Keep umlauts in the slugs of products", "--model", `scripted:${join(world.workspace, `${name}.toml`)}`);
    world.remove(`${name}.toml`);
  }
  world.write("turns.toml", `
[[turns]]
text = "I read the cart first."
tokens = { input = 41200, output = 380 }
calls = [{ tool = "read", args = { path = "src/cart.rs" } }, { tool = "grep", args = { pattern = "total" } }]
[[turns]]
text = "Now the test, and a look at what it needs."
tokens = { input = 52900, output = 910 }
calls = [{ tool = "write", args = { path = "tests/cart.rs", content = "#[test]\\nfn a_discount_is_rounded() {}\\n" } }, { tool = "shell", args = { command = "ls tests && cat .env" } }, { tool = "shell", args = { command = "ls tests" } }]
[[turns]]
text = "There is a test for discounts now; the secrets stay where they are."
tokens = { input = 55100, output = 240 }
`);
  world.run("run", "Write a test for the discounts", "--model", `scripted:${join(world.workspace, "turns.toml")}`);
  world.write("make.sh", "mkdir -p .vscode && printf '{}' > .vscode/tasks.json\n");
  const agent = await world.session("fix-rounding");
  await agent.call("shell", { command: "sh make.sh" });
  const granted = agent.call("edit", { path: "notes.md", find: "one", replace: "ONE" });
  const [asked] = await until("it waits", async () => (await world.api("GET", "/v1/approvals")).json.approvals.length && (await world.api("GET", "/v1/approvals")).json.approvals);
  await world.api("POST", `/v1/approvals/${asked.id}`, { answer: "approve", scope: "session", hash: asked.hash });
  await granted;
  await agent.call("list", {});
  await agent.call("read", { path: "src/cart.rs" });
  await agent.call("shell", { command: "ls -l && echo done && touch .envrc" });
  await agent.call("write", { path: "src/money.rs", content: "/// Whole cents, rounded half up.\npub fn cents(amount: f64) -> u64 {\n    (amount * 100.0).round() as u64\n}\n" });
  await agent.call("read", { path: ".env" });
  await agent.call("shell", { command: "sleep 300", background: true });
  agent.call("shell", { command: "bash --norc", tty: true, background: true });
  agent.call("edit", { path: "src/cart.rs", find: "(sum * (1.0 - discount)) as u64", replace: "(sum * (1.0 - discount)).round() as u64" });
  await until("it waits first", async () => (await world.api("GET", "/v1/approvals")).json.approvals.length === 1);
  agent.call("delete", { path: "notes.md" });
  agent.call("ask", { question: "How should half a cent be rounded?", choices: [{ label: "Up", description: "as the shop does today" }, { label: "To even", description: "as accountants like it" }] });
  await world.api("POST", "/v1/inbox", { task: "Tidy up the cart and run the tests" });
  await new Promise((done) => setTimeout(done, 1500));
  const calls = (await world.api("GET", `/v1/runs/${agent.run}/outline?limit=100`)).json.rows;
  const written = calls.find((row) => row.name === "write");
  const processes = (await world.api("GET", "/v1/processes")).json.processes;
  const terminal = processes.find((it) => it.terminal) ?? processes[0];
  const worked = (await world.api("GET", "/v1/runs?q=discounts&limit=5")).json.runs.find((run) => run.task);
  const views = {
    tree: `#/run/${worked.id}`, now: "#/now", approvals: "#/approvals", runs: "#/runs", run: `#/run/${agent.run}`, timeline: `#/run/${agent.run}?mode=timeline`,
    call: `#/run/${agent.run}/call/${written.id}`, changes: `#/changes?run=${agent.run}`, quarantine: "#/quarantine",
    processes: `#/processes/${terminal?.id ?? ""}`, policy: "#/policy", try: "#/policy?tab=try", replay: "#/policy?tab=replay",
    grants: "#/grants", tools: "#/tools", inbox: "#/inbox", doctor: "#/doctor", search: "#/search?q=cart.rs",
  };
  const denied = calls.find((row) => row.status === "denied");
  views.denied = `#/run/${agent.run}/call/${denied.id}`;
  for (const [name, options] of [
    ["dark", { colorScheme: "dark" }],
    ["light", { colorScheme: "light" }],
    ["narrow", { colorScheme: "dark", viewport: { width: 375, height: 780 } }],
  ]) {
    const page = await world.page(options);
    for (const [view, hash] of Object.entries(views)) {
      await page.goto(`${world.url}/${hash}`);
      await page.waitForTimeout(view === "doctor" ? 3500 : 900);
      if (view === "try") {
        await page.getByLabel("Command line").fill("git status && cat .env && rm -rf build");
        await page.getByRole("button", { name: "Judge it" }).click();
        await page.locator(".why-head").first().waitFor();
      } else if (view === "replay") {
        await page.getByLabel(/Draft/).fill('preset = "read-only"\n');
        await page.getByRole("button", { name: "Replay past runs" }).click();
        await page.locator(".differences li").first().waitFor();
      }
      await page.screenshot({ path: join(directory, `${view}-${name}.png`) });
      const wide = await isTooWide(page);
      if (wide) console.log(`${view} (${name}) is wider than the screen`);
    }
    agent.call("shell", { command: "for i in $(seq 1 60); do echo \"test cart::case_$i ... ok\"; sleep 0.2; done" });
    await states(page, name);
    await page.context().close();
  }
  console.log(world.faults.length ? `faults:\n${[...new Set(world.faults)].join("\n")}` : "no faults");
} finally {
  await world.close();
}

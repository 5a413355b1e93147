// What each view shows and does, in a real browser: why, scopes, grants, turns, artifacts, doctor, search, keys, cost, TLS, an
// installed app, and notices.
import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { World, card, check, denyByKey, isTooWide, script, until } from "./world.mjs";

async function shows_why_and_what_each_scope_grants(world) {
  const page = await world.page();
  const agent = await world.session("why");
  const denied = await agent.call("read", { path: ".env" });
  await page.goto(`${world.url}/#/run/${agent.run}`);
  await page.locator(".wrow", { hasText: ".env" }).click();
  const why = page.locator(".detail .why");
  await why.locator(".why-head .badge.deny").waitFor();
  check((await why.locator("li.main").innerText()).includes("decided by"), "no finding decided");
  check((await why.innerText()).includes("read .env"), "the tree doesn't say what it is about");
  check((await page.locator(".detail .failure").innerText()).includes(denied.error.code), "the error isn't shown");

  const pending = agent.call("edit", { path: "notes.md", find: "three", replace: "3" });
  await page.goto(`${world.url}/#/approvals`);
  const ask = card(page, "notes.md");
  await ask.waitFor();
  const shown = await ask.locator(".grants").allInnerTexts();
  const offered = (await world.api("GET", "/v1/approvals")).json.approvals[0].request.scopes.map((scope) => scope.grants.replaceAll("`", ""));
  check(JSON.stringify(shown) === JSON.stringify(offered) && shown.length >= 3, `shown: ${shown}`);
  const session = ask.getByRole("button", { name: /Approve: this session/ });
  await until("it is still", () => session.isEnabled());
  await session.click();
  check((await pending).ok, "the call failed");

  // What was granted reaches further, until it is revoked.
  check((await agent.call("edit", { path: "notes.md", find: "3", replace: "three" })).ok, "the grant doesn't cover the next call");
  await page.goto(`${world.url}/#/grants`);
  const grant = page.locator(".card.grant", { hasText: "notes.md" });
  await grant.getByText("ada").waitFor();
  await grant.getByRole("button", { name: "Revoke" }).click();
  await grant.getByRole("button", { name: "Yes" }).click();
  await grant.waitFor({ state: "detached" });
  const again = agent.call("edit", { path: "notes.md", find: "three", replace: "3" });
  const asked = await until("it is asked again", async () => (await world.api("GET", "/v1/approvals")).json.approvals[0]);
  await page.goto(`${world.url}/#/approvals`);
  // The first request may still be there for a moment, and the key is for the first one.
  await page.locator(`[data-ask="${asked.id}"]`).waitFor();
  await until("only that is shown", async () => (await page.locator(".card.approval").count()) === 1);
  await (await denyByKey(page)).click();
  check((await again).error.code === "approval_denied", "it wasn't asked again");
  await page.context().close();
}

async function undoes_a_turn_and_a_run_of_an_agent_and_shows_what_it_cost(world) {
  const model = script(world, "turns.toml", `
[[turns]]
text = "First."
tokens = { input = 100000, output = 1000 }
calls = [{ tool = "write", args = { path = "first.txt", content = "1" } }]
[[turns]]
text = "Second."
tokens = { input = 100000, output = 1000 }
calls = [{ tool = "write", args = { path = "second.txt", content = "2" } }]
[[turns]]
text = "Done with both."
`);
  world.run("run", "Make two files", "--model", model);
  const page = await world.page();
  await page.goto(`${world.url}/#/runs`);
  const row = page.locator(".run-row", { hasText: "Make two files" });
  // 200,000 tokens in at 2, 2,000 out at 10, for a million each.
  check((await row.locator(".cost").innerText()) === "€0.42", `the list says ${await row.innerText()}`);
  await row.click();
  await page.waitForURL("**/#/run/run_*");
  const [run] = page.url().match(/run_\w+/);
  await page.locator(".view-head .cost", { hasText: "€0.42" }).waitFor();
  check((await page.locator(".view-head").innerText()).includes("202,000 tokens"), "the run doesn't say how many tokens it used");
  await page.locator(".wrow", { hasText: "Turn 2" }).waitFor();
  await page.getByRole("button", { name: "Timeline" }).click();
  await page.locator(".wrow .bar").first().waitFor();
  await page.goto(`${world.url}/#/changes?run=${run}`);
  await page.getByRole("button", { name: "Undo turn 2" }).click();
  await page.getByRole("button", { name: "Yes" }).click();
  await until("the second file is gone", () => !world.files().includes("second.txt"));
  check(world.read("first.txt") === "1", "the first file is gone, too");
  await page.getByRole("button", { name: "Undo the run" }).click();
  await page.getByRole("button", { name: "Yes" }).click();
  await until("the first file is gone", () => !world.files().includes("first.txt"));
  await page.context().close();
}

async function shows_agents_below_the_call_that_started_them_and_how_they_ended(world) {
  const model = script(world, "agents.toml", `
[[turns]]
text = "I let somebody look."
calls = [{ tool = "task", args = { agent = "explore", objective = "Look around" } }, { tool = "task", args = { agent = "explore", objective = "Look again" } }]
[[turns]]
text = "Done."
[[turns]]
agent = "explore"
text = "There is one file."
`);
  world.run("run", "Explain it to me", "--model", model);
  const page = await world.page();
  await page.goto(`${world.url}/#/runs`);
  await page.locator(".run-row", { hasText: "Explain it to me" }).click();
  const row = (text) => page.locator(".wrow", { hasText: text });
  const named = (name) => page.locator(".wrow").filter({ has: page.getByText(name, { exact: true }) });
  await until("both agents are shown", async () => (await named("explore").count()) === 2);
  check((await named("task").allInnerTexts()).join().match(/Look (around|again)/g).length === 2, "the calls aren't told by their objectives");
  // The script has one answer for two agents.
  await row("There is one file.").waitFor();
  await named("explore").locator(".bad", { hasText: "model_failed" }).waitFor();
  await row("The script has no more turns").waitFor();
  await page.context().close();
}

async function finds_runs_calls_paths_and_commands(world) {
  const agent = await world.session("needle-session");
  await agent.call("write", { path: "haystack/needle-path.txt", content: "x" });
  await agent.call("shell", { command: "echo needle-command" });
  const page = await world.page();
  await page.keyboard.press("/");
  const box = page.getByLabel("Search everything");
  for (const [text, found] of [["needle-session", ".run-row"], ["needle-path.txt", ".rules li"], ["NEEDLE-command", ".rules li"], [agent.run, ".run-row"]]) {
    await box.fill(text);
    await page.waitForURL(`**/#/search?q=${encodeURIComponent(text)}`);
    await page.locator(found).first().waitFor();
  }
  await box.fill("needle-command");
  await page.locator(".rules li", { hasText: "echo needle-command" }).getByRole("link").click();
  await page.locator(".detail").getByText("needle-command").first().waitFor();
  await box.waitFor({ state: "detached" });
  await page.getByLabel("Search in this run").fill("needle-path");
  await until("only one row is left", async () => (await page.locator(".wrow").count()) === 1);
  await page.goto(`${world.url}/#/runs`);
  await page.getByLabel("Search runs").fill("needle-session");
  await until("only one run is left", async () => (await page.locator(".run-row").count()) === 1);
  await page.context().close();
}

async function everything_is_reached_by_keys(world) {
  const agent = await world.session("keys");
  await agent.call("read", { path: "notes.md" });
  await agent.call("list", {});
  const page = await world.page();
  const titles = { a: "Waiting for you", r: "Runs", c: "Changes", q: "Quarantine", x: "Processes", p: "Policy", g: "Grants", t: "Tools", i: "Inbox", d: "Doctor", n: "Now" };
  for (const [key, title] of Object.entries(titles)) {
    await page.keyboard.press("g");
    await page.keyboard.press(key);
    await page.getByRole("heading", { name: title, exact: true, level: 1 }).waitFor();
    await until(`${title} has the focus`, () => page.evaluate(() => document.activeElement.tagName === "H1"));
  }
  await page.keyboard.press("?");
  const help = page.locator("dialog#help[open]");
  await help.waitFor();
  for (const words of ["search", "down, up", "doctor"]) check((await help.innerText()).includes(words), `the sheet doesn't know \`${words}\``);
  await page.keyboard.press("Escape");
  await help.waitFor({ state: "detached" });

  // By Tab alone: to the content, into the rows, to a call and back.
  await page.goto(`${world.url}/#/run/${agent.run}`);
  await page.locator(".wrow", { hasText: "notes.md" }).waitFor();
  for (let index = 0; index < 60 && !(await page.evaluate(() => document.activeElement.classList.contains("windowed"))); index++) {
    await page.keyboard.press("Tab");
    const outline = await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle);
    check(outline !== "none", `nothing shows that ${await page.evaluate(() => document.activeElement.outerHTML.slice(0, 80))} has the focus`);
  }
  await page.keyboard.press("j");
  await page.keyboard.press("j");
  await page.keyboard.press("k");
  await page.keyboard.press("Enter");
  await page.locator(".detail h2", { hasText: "read" }).waitFor();
  await page.keyboard.press("Escape");
  await page.locator(".detail").waitFor({ state: "detached" });
  await page.context().close();
}

async function shows_an_artifact_part_by_part(world) {
  const agent = await world.session("artifact");
  const reply = await agent.call("shell", { command: "seq 1 30000" });
  const [artifact] = reply.artifacts.refs;
  check(artifact.bytes > 100_000, JSON.stringify(reply.artifacts));
  const page = await world.page();
  await page.goto(`${world.url}/#/run/${agent.run}`);
  await page.locator(".wrow", { hasText: "seq 1 30000" }).click();
  const detail = page.locator(".detail");
  await detail.getByRole("button", { name: "Show", exact: true }).click();
  const shown = detail.getByRole("region", { name: /Artifact/ });
  await until("its beginning is shown", async () => (await shown.textContent()).startsWith("1\n2\n3\n"));
  for (let part = 0; part < 3 && (await detail.getByRole("button", { name: "Show more" }).count()); part++) {
    const before = (await shown.textContent()).length;
    await detail.getByRole("button", { name: "Show more" }).click();
    await until("there is more", async () => (await shown.textContent()).length > before);
  }
  check((await shown.textContent()).endsWith("\n30000\n"), "the end is missing");
  await page.context().close();
}

/** Names, commands and words of any length, on a phone. */
async function long_words_fit_a_phone(world) {
  const long = "a".repeat(120);
  const session = `long-${"x".repeat(50)}`;
  const agent = await world.session(session);
  await agent.call("write", { path: `${"nested-directory/".repeat(9)}${long}.txt`, content: `${long.repeat(4)}\n` });
  await agent.call("shell", { command: `echo ${long}${long}` });
  await agent.call("shell", { command: `sleep 300 # ${long}`, background: true });
  await agent.call("shell", { command: "bash --norc --noprofile", tty: true, background: true });
  agent.call("edit", { path: "notes.md", find: "one", replace: `${long}${long}` });
  agent.call("ask", { question: `${long}?`, choices: [{ label: long, description: long }, { label: "No" }] });
  await until("both wait", async () => (await world.api("GET", "/v1/approvals")).json.approvals.length && (await world.api("GET", "/v1/questions")).json.questions.length);
  await world.api("POST", "/v1/inbox", { task: `${long} ${long}` });
  const { rows } = (await world.api("GET", `/v1/runs/${agent.run}/outline`)).json;
  const processes = (await world.api("GET", "/v1/processes")).json.processes.filter((it) => it.session === session);
  check(rows.length >= 6 && processes.length === 2, `${rows.length} calls, ${processes.length} processes`);
  const page = await world.page({ viewport: { width: 375, height: 780 } });
  const calls = rows.map((row) => `run/${agent.run}/call/${row.id}`);
  for (const view of ["now", "approvals", "runs", `run/${agent.run}`, `run/${agent.run}?mode=timeline`, ...calls, `changes?run=${agent.run}`, ...processes.map((it) => `processes/${it.id}`), "inbox", `search?q=${long}`]) {
    await page.goto(`${world.url}/#/${view}`);
    await page.waitForTimeout(350);
    check(!(await isTooWide(page)), `${view} is wider than the page`);
  }
  await page.context().close();
  await world.api("DELETE", `/v1/sessions/${session}`);
}

/** What was scrolled in one call is no place in another. */
async function a_call_is_shown_from_its_beginning(world) {
  const agent = await world.session("beginning");
  for (const name of ["first", "second"]) await agent.call("write", { path: `${name}.txt`, content: "line\n".repeat(80) });
  const page = await world.page();
  await page.goto(`${world.url}/#/run/${agent.run}`);
  await page.locator(".wrow", { hasText: "first.txt" }).click();
  await page.locator(".detail .file").waitFor();
  await page.locator(".detail").evaluate((it) => (it.scrollTop = 300));
  await page.locator(".wrow", { hasText: "second.txt" }).click();
  await page.locator(".detail .file", { hasText: "second.txt" }).waitFor();
  check((await page.locator(".detail").evaluate((it) => it.scrollTop)) === 0, "it is shown from the place of another call");
  for (const name of ["first", "second"]) world.remove(`${name}.txt`);
  await page.context().close();
}

async function checks_the_machine(world) {
  const page = await world.page();
  await page.goto(`${world.url}/#/doctor`);
  await until("there are checks", async () => (await page.locator(".checks li").count()) > 5, 30_000);
  await page.goto(`${world.url}/#/tools`);
  await page.getByText("shell", { exact: true }).first().waitFor();
  await page.goto(`${world.url}/#/policy`);
  await page.getByText("toolgate.toml").first().waitFor();
  await page.context().close();
}

async function can_be_installed_and_notices_say_nothing(world) {
  const context = await world.browser.newContext({ permissions: ["notifications"] });
  context.setDefaultTimeout(10_000);
  const page = await context.newPage();
  world.watch(page);
  await page.addInitScript(() => {
    globalThis.noticed = [];
    globalThis.Notification = class {
      static permission = "granted";
      static requestPermission = async () => "granted";
      constructor(title, options) {
        globalThis.noticed.push(JSON.stringify({ title, ...options }));
      }
    };
    Object.defineProperty(document, "hidden", { get: () => Boolean(globalThis.isHidden) });
  });
  await page.goto(world.link());
  await page.locator(".connection.live").waitFor();
  const session = await context.newCDPSession(page);
  const manifest = await session.send("Page.getAppManifest");
  check(manifest.data && !manifest.errors.length, `the manifest is wrong: ${JSON.stringify(manifest.errors)}`);
  const { installabilityErrors } = await session.send("Page.getInstallabilityErrors");
  // A private window of the test can't install anything.
  const errors = installabilityErrors.filter((it) => it.errorId !== "in-incognito");
  check(!errors.length, `it can't be installed: ${JSON.stringify(errors)}`);

  await page.locator(".who summary").click();
  await page.getByRole("button", { name: "Notices: off" }).click();
  await page.getByRole("button", { name: "Notices: on" }).waitFor();
  await page.evaluate(() => (globalThis.isHidden = true));
  const agent = await world.session("notices");
  agent.call("edit", { path: "notes.md", find: "one", replace: "secret-word" });
  const notices = await until("a notice is shown", async () => (await page.evaluate(() => globalThis.noticed)).filter((it) => it.includes("waits")).length && page.evaluate(() => globalThis.noticed));
  check(!/secret-word|notes|edit/.test(notices.join()), `a notice says ${notices}`);
  await world.api("DELETE", "/v1/sessions/notices");
  await context.close();
}

async function works_over_tls(outer) {
  const world = new World(outer.program);
  world.browser = outer.browser;
  try {
    const [certificate, key] = [join(world.root, "certificate.pem"), join(world.root, "key.pem")];
    const words = `req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=IP:127.0.0.1,DNS:localhost -keyout ${key} -out ${certificate}`;
    execFileSync("openssl", words.split(" "), { stdio: "ignore" });
    await world.start("--tls-cert", certificate, "--tls-key", key);
    check(world.url.startsWith("https://"), world.url);
    const page = await world.page({ ignoreHTTPSErrors: true });
    const [cookie] = await page.context().cookies();
    check(cookie.name === `__Host-toolgate-${world.port}` && cookie.secure && cookie.httpOnly && cookie.sameSite === "Strict" && cookie.path === "/", JSON.stringify(cookie));
    const api = page.context().request;
    const headers = { Authorization: `Bearer ${world.token}` };
    const session = await (await api.post(`${world.url}/v1/sessions`, { headers, data: { id: "tls", wait_seconds: 60 } })).json();
    const pending = api.post(`${world.url}/v1/calls`, { headers: { Authorization: `Bearer ${session.token}` }, data: { name: "edit", args: { path: "notes.md", find: "two", replace: "TLS" } } });
    await page.goto(`${world.url}/#/approvals`);
    const once = card(page, "notes.md").getByRole("button", { name: /Approve: once/ });
    await until("it is still", () => once.isEnabled());
    await once.click();
    check((await (await pending).json()).ok && world.read("notes.md").includes("TLS"), "it wasn't approved");
    await page.context().close();
    outer.faults.push(...world.faults);
  } finally {
    world.browser = null;
    await world.close();
  }
}

/** 20,000 calls and 40,000 events, of which few are in the page at a time. */
async function a_very_long_run_is_windowed(world) {
  const run = "run_01a1ffffffff7000800000000000000e";
  const directory = join(world.workspace, ".toolgate/runs", run);
  mkdirSync(directory, { recursive: true });
  const event = (seq, kind, more) => `${JSON.stringify({ seq, prev: "0".repeat(64), time: "2026-01-01T00:00:00Z", run, kind, ...more })}\n`;
  let text = event(1, "run.started", { workspace: world.workspace, session: "long", preset: "workspace", front_end: "http", version: "0" });
  for (let index = 0; index < 20_000; index++) {
    const call = { tool_call_id: `call_long_${index}` };
    text += event(2 + index * 2, "tool_call.started", { ...call, tool: "read", args: { path: `src/file_${index}.rs` }, effects: [] });
    text += event(3 + index * 2, "tool_call.completed", { ...call, duration_ms: 1, redacted: false, payload: {} });
  }
  writeFileSync(join(directory, "events.jsonl"), text);
  const page = await world.page();
  await page.goto(`${world.url}/#/run/${run}`);
  await page.getByText("20,000 calls").first().waitFor({ timeout: 60_000 });
  await page.locator(".windowed").focus();
  await page.keyboard.press("End");
  await page.locator(".wrow", { hasText: "file_19999.rs" }).waitFor();
  check((await page.locator(".wrow").count()) < 120, "rows that can't be seen are drawn");
  await page.getByLabel("Search in this run").fill("file_12345");
  await page.locator(".wrow", { hasText: "file_12345.rs" }).waitFor();
  check((await page.locator(".wrow").count()) === 1, "the search found more");
  await page.context().close();
}

export const VIEWS = [
  shows_why_and_what_each_scope_grants, undoes_a_turn_and_a_run_of_an_agent_and_shows_what_it_cost,
  shows_agents_below_the_call_that_started_them_and_how_they_ended,
  finds_runs_calls_paths_and_commands, everything_is_reached_by_keys, shows_an_artifact_part_by_part, long_words_fit_a_phone,
  a_call_is_shown_from_its_beginning, checks_the_machine, can_be_installed_and_notices_say_nothing,
  a_very_long_run_is_windowed, works_over_tls,
];

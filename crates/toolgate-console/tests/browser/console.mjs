// The console in a real browser, against a real server: `node console.mjs PROGRAM`.
import { readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { ATTACKS } from "./attacks.mjs";
import { FOLLOWING } from "./following.mjs";
import { VIEWS } from "./views.mjs";
import { World, card, check, denyByKey, isTooWide, until } from "./world.mjs";

const [program] = process.argv.slice(2);
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

async function approves_with_the_diff_that_was_shown(world) {
  const page = await world.page();
  const agent = await world.session("approve");
  const pending = agent.call("edit", { path: "notes.md", find: "two", replace: "TWO" });
  await page.goto(`${world.url}/#/approvals`);
  const ask = card(page, "notes.md");
  await ask.locator("tr.d-removed", { hasText: "two" }).waitFor();
  await ask.locator("tr.d-added", { hasText: "TWO" }).waitFor();
  const once = ask.getByRole("button", { name: /Approve: once/ });
  await once.focus();
  await page.keyboard.press("Enter");
  await page.waitForTimeout(900);
  check((await world.api("GET", "/v1/approvals")).json.approvals.length === 1, "Enter alone approved");
  await once.click();
  const reply = await pending;
  check(reply.ok, `the call failed: ${JSON.stringify(reply.error)}`);
  check(world.read("notes.md").includes("TWO"), "the file wasn't changed");
  await ask.waitFor({ state: "detached" });
  await page.getByText("ada (http)").first().waitFor();
  await page.context().close();
}

async function a_request_that_moves_cannot_be_approved(world) {
  const page = await world.page();
  const agent = await world.session("moving");
  const pending = agent.call("edit", { path: "notes.md", find: "one", replace: "ONE" });
  await page.goto(`${world.url}/#/approvals`);
  const ask = card(page, "notes.md");
  const once = ask.getByRole("button", { name: /Approve: once/ });
  await until("it is still", () => once.isEnabled());
  await page.evaluate(() => document.querySelector("main").prepend(Object.assign(document.createElement("p"), { textContent: "pushes all rows down" })));
  await until("it notices that it moved", () => once.isDisabled(), 2000);
  await page.keyboard.press("1");
  check((await world.api("GET", "/v1/approvals")).json.approvals.length === 1, "a key approved a row that had just moved");
  const other = (await world.api("GET", "/v1/approvals")).json.approvals[0];
  const forged = await page.evaluate(
    ([id]) => fetch(`/v1/approvals/${id}`, { method: "POST", headers: { "Content-Type": "application/json", "X-Toolgate-Console": "1" }, body: JSON.stringify({ answer: "approve", hash: "0".repeat(64) }) }).then((it) => it.status),
    [other.id],
  );
  check(forged === 409, `another request's hash was accepted: ${forged}`);
  await until("it is still again", () => once.isEnabled());
  await page.keyboard.press("1");
  check((await pending).ok, "the key didn't approve");
  await page.context().close();
}

async function denies_with_words_and_two_browsers_agree(world) {
  const [one, other] = [await world.page(), await world.page()];
  const agent = await world.session("deny");
  const pending = agent.call("edit", { path: "src/main.rs", find: "hello", replace: "bye" });
  for (const page of [one, other]) {
    await page.goto(`${world.url}/#/approvals`);
    await card(page, "src/main.rs").waitFor();
  }
  const deny = await denyByKey(one);
  await one.getByLabel(/Why\?/).fill("keep the greeting");
  await deny.click();
  const reply = await pending;
  check(reply.error.code === "approval_denied" && reply.error.message.includes("keep the greeting"), "the words didn't arrive");
  await card(other, "src/main.rs").waitFor({ state: "detached" });
  await other.getByText("keep the greeting").waitFor();
  await Promise.all([one.context().close(), other.context().close()]);
}

async function answers_a_question(world) {
  const page = await world.page();
  const agent = await world.session("question");
  const pending = agent.call("ask", { question: "Which colour?", choices: [{ label: "Red" }, { label: "Blue" }] });
  await page.locator(".card.question", { hasText: "Which colour?" }).waitFor();
  await page.getByRole("button", { name: "Blue" }).click();
  const reply = await pending;
  check(JSON.stringify(reply.payload).includes("Blue"), `answered with ${JSON.stringify(reply)}`);
  await page.context().close();
}

async function follows_a_command_live_and_undoes_a_call(world) {
  const page = await world.page();
  const agent = await world.session("live");
  const pending = agent.call("shell", { command: "for i in 1 2 3 4 5 6 7 8; do echo line-$i; sleep 0.3; done; echo made > made.txt" });
  await page.locator(".card.running .output", { hasText: "line-2" }).waitFor();
  check((await pending).ok, "the command failed");
  await page.goto(`${world.url}/#/run/${agent.run}`);
  await page.locator(".wrow", { hasText: "line-$i" }).click();
  await page.locator(".call").getByText("made.txt").first().waitFor();
  check(world.read("made.txt") === "made\n", "it isn't there");
  await page.getByRole("button", { name: "Undo this call" }).click();
  await page.getByRole("button", { name: "Yes" }).click();
  await page.getByText("Undone.").waitFor();
  check(!readdirSync(world.workspace).includes("made.txt"), "it is still there");
  await page.context().close();
}

async function releases_from_quarantine(world) {
  const page = await world.page();
  const agent = await world.session("quarantine");
  world.write("make.sh", "mkdir -p .vscode && printf '{}' > .vscode/tasks.json\n");
  const reply = await agent.call("shell", { command: "sh make.sh" });
  check(reply.ok, JSON.stringify(reply.error));
  await page.goto(`${world.url}/#/quarantine`);
  const held = page.locator(".card.quarantined", { hasText: "tasks.json" });
  await held.waitFor();
  await held.getByRole("button", { name: "Release" }).click();
  await held.getByRole("button", { name: "Yes" }).click();
  await held.waitFor({ state: "detached" });
  check(world.read(".vscode/tasks.json") === "{}", "it wasn't written");
  await page.context().close();
}

async function tries_and_replays_a_policy(world) {
  const page = await world.page();
  await page.goto(`${world.url}/#/policy?tab=try`);
  await page.getByLabel("Command line").fill("cat .env");
  await page.getByRole("button", { name: "Judge it" }).click();
  await page.locator(".why-head .badge.deny").waitFor();
  await page.goto(`${world.url}/#/policy?tab=replay`);
  await page.getByLabel(/Draft/).fill('preset = "read-only"\n');
  await page.getByRole("button", { name: "Replay past runs" }).click();
  await page.locator(".differences li").first().waitFor();
  check((await page.locator(".differences").innerText()).includes("edit"), "the edits would be decided as before");
  await page.context().close();
}

async function types_into_a_terminal_and_stops_it(world) {
  const page = await world.page();
  const agent = await world.session("terminal");
  await agent.call("shell", { command: "bash --norc", tty: true, background: true });
  await page.goto(`${world.url}/#/processes`);
  await page.locator(".list-row", { hasText: "bash --norc" }).click();
  const screen = page.locator(".screen");
  await screen.focus();
  await page.keyboard.type("echo typed-$((40+2))\n");
  await screen.getByText("typed-42").waitFor();
  await page.keyboard.press("Control+]");
  await page.getByRole("button", { name: "Kill" }).click();
  await page.getByRole("button", { name: "Yes" }).click();
  await page.getByText("No process runs in this workspace.").waitFor();
  await page.context().close();
}

async function comes_back_after_a_cut_and_a_restart(world) {
  const page = await world.page();
  await page.context().setOffline(true);
  await page.evaluate(() => fetch("/health").catch(() => {}));
  const agent = await world.session("cut");
  const reply = agent.call("read", { path: "notes.md" });
  await reply;
  await page.context().setOffline(false);
  await world.stop();
  await page.locator(".connection.lost").waitFor();
  await world.start();
  await page.locator(".connection.live").waitFor({ timeout: 20_000 });
  await page.goto(`${world.url}/#/runs`);
  const again = await world.session("after-restart");
  await again.call("read", { path: "notes.md" });
  await page.locator(".run-row", { hasText: "after-restart" }).waitFor();
  await page.context().close();
}

async function signs_out_and_expires(world) {
  const page = await world.page();
  world.expireSignIns();
  await page.goto(`${world.url}/#/doctor`);
  await page.getByText("Nobody is signed in").waitFor();
  await page.context().close();
  const other = await world.page();
  await other.locator(".who summary").click();
  await other.getByRole("button", { name: "Sign out" }).click();
  await other.getByText("Nobody is signed in").waitFor();
  check((await other.context().cookies()).length === 0, "the cookie is still there");
  await other.context().close();
}

/** Nothing that axe finds against WCAG 2.2 AA, and nothing wider than the page. */
async function meets_wcag(page, what) {
  await page.evaluate(axe);
  const found = await page.evaluate(() => globalThis.axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"] }));
  const words = found.violations.map((it) => `${it.id}: ${it.nodes.slice(0, 3).map((node) => node.html.slice(0, 160)).join(" | ")}`);
  check(!words.length, `${what}:\n${words.join("\n")}`);
  check(!(await isTooWide(page)), `${what} is wider than the page`);
}

/** What isn't a view: the help sheet, a denial, the menus, and nobody signed in. */
async function states_meet_wcag(world, page, what) {
  await page.goto(`${world.url}/#/now`);
  await page.getByRole("button", { name: /^Deny…/ }).first().click();
  await meets_wcag(page, `a denial ${what}`);
  await page.getByRole("button", { name: "Back" }).click();
  await page.locator(".who summary").click();
  await meets_wcag(page, `the menu of the person ${what}`);
  await page.getByRole("button", { name: /^Keys/ }).click();
  await page.locator("dialog#help[open]").waitFor();
  await meets_wcag(page, `the help sheet ${what}`);
  await page.keyboard.press("Escape");
  if (await page.getByRole("button", { name: "Menu" }).isVisible()) {
    await page.getByRole("button", { name: "Menu" }).click();
    await meets_wcag(page, `the menu ${what}`);
  }
  await page.context().clearCookies();
  await page.reload();
  await page.getByText("Nobody is signed in").waitFor();
  await meets_wcag(page, `nobody signed in ${what}`);
}

async function is_accessible(world) {
  const agent = await world.session("accessible");
  await agent.call("shell", { command: "ls" });
  agent.call("edit", { path: "src/main.rs", find: "hello", replace: "hi" });
  const views = ["now", "approvals", "runs", `run/${agent.run}`, "changes", "quarantine", "processes", "policy", "policy?tab=try", "policy?tab=replay", "grants", "tools", "inbox", "doctor", "search?q=ls"];
  const row = (await world.api("GET", `/v1/runs/${agent.run}/outline`)).json.rows[0];
  views.push(`run/${agent.run}/call/${row.id}`);
  for (const options of [{ colorScheme: "dark" }, { colorScheme: "light" }, { colorScheme: "light", viewport: { width: 375, height: 780 } }]) {
    const page = await world.page(options);
    for (const view of views) {
      await page.goto(`${world.url}/#/${view}`);
      await page.waitForTimeout(view === "doctor" ? 1500 : 350);
      await meets_wcag(page, `${view} ${JSON.stringify(options)}`);
    }
    await states_meet_wcag(world, page, JSON.stringify(options));
    await page.context().close();
  }
  await world.api("DELETE", "/v1/sessions/accessible");
}

const TESTS = [
  approves_with_the_diff_that_was_shown, a_request_that_moves_cannot_be_approved, denies_with_words_and_two_browsers_agree, answers_a_question,
  follows_a_command_live_and_undoes_a_call, releases_from_quarantine, tries_and_replays_a_policy, types_into_a_terminal_and_stops_it,
  ...VIEWS, ...FOLLOWING, ...ATTACKS, is_accessible, comes_back_after_a_cut_and_a_restart, signs_out_and_expires,
];

const chosen = TESTS.filter((it) => it.name.includes(process.argv[3] ?? ""));
const world = new World(program);
let failed = 0;
try {
  await world.start();
  await world.launch();
  for (const test of chosen) {
    const began = Date.now();
    try {
      await test(world);
      check(!world.faults.length, `the page reported: ${world.faults.join("; ")}`);
      console.log(`ok   ${test.name} (${((Date.now() - began) / 1000).toFixed(1)} s)`);
    } catch (error) {
      failed += 1;
      console.log(`FAIL ${test.name}: ${error.message}`);
      await world.denyAll().catch((problem) => console.log(`what waits couldn't be denied: ${problem.message}`));
    }
    world.faults = [];
  }
} finally {
  await world.close();
}
console.log(`${chosen.length - failed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);

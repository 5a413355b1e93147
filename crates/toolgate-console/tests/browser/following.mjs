// What happens elsewhere while somebody looks: agents and other programs at work, answers of others, the inbox, and a
// connection that is cut.
import { spawn } from "node:child_process";
import { connect, createServer } from "node:net";
import { card, check, script, until } from "./world.mjs";

async function watches_an_agent_work(world) {
  world.write("watched.md", "one\n");
  const page = await world.page();
  const model = script(world, "long.toml", `
[[turns]]
text = "I make a file first."
calls = [{ tool = "write", args = { path = "watched.txt", content = "1" } }]
[[turns]]
text = "Then I wait a little."
calls = [{ tool = "shell", args = { command = "i=0; while sleep 0.2; do i=$((i+1)); echo tick-$i; done" } }]
[[turns]]
text = "And now I change something that you are asked about."
calls = [{ tool = "edit", args = { path = "watched.md", find = "one", replace = "1" } }]
[[turns]]
text = "That was all."
`);
  // At a terminal of its own, where the request could be answered as well.
  const words = `'${world.program}' -w '${world.workspace}' run 'Work while I look' --model '${model}'`;
  const agent = spawn("script", ["-qec", words, "/dev/null"], { env: { ...world.environment, TERM: "xterm" }, stdio: ["pipe", "ignore", "ignore"] });
  let hasEnded = false;
  agent.once("exit", () => (hasEnded = true));
  await page.locator(".run-row", { hasText: "Work while I look" }).click();
  await page.locator(".wrow", { hasText: "I make a file first." }).waitFor();
  await page.locator(".wrow", { hasText: "tick-$i" }).click();
  // The command goes on until its output was seen.
  await page.locator(".detail .output", { hasText: "tick-2" }).first().waitFor();
  await page.getByText("at work").waitFor();
  await world.kill("tick-");
  await page.goto(`${world.url}/#/now`);
  const ask = card(page, "watched.md");
  await ask.waitFor();
  await until("it is still", () => ask.getByRole("button", { name: /Approve: once/ }).isEnabled());
  await page.keyboard.press("1");
  await until("the agent has ended", () => hasEnded, 30_000);
  check(world.read("watched.md") === "1\n", "the change that was approved wasn't made");
  await page.locator(".run-row", { hasText: "Work while I look" }).locator(".status.ok").waitFor();
  await page.getByText("No call runs at the moment.").waitFor();
  world.remove("watched.md");
  await page.context().close();
}

/** A command in the terminal of another program of the workspace, such as the server of an MCP client. */
async function types_into_a_process_of_another_program(world) {
  const page = await world.page();
  const other = spawn(world.program, ["-w", world.workspace, "serve", "--stdio"], { env: world.environment, stdio: ["pipe", "pipe", "ignore"] });
  const say = (message) => other.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  say({ id: 1, method: "initialize", params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "test", version: "1" } } });
  say({ method: "notifications/initialized" });
  say({ id: 2, method: "tools/call", params: { name: "shell", arguments: { command: "bash --norc --noprofile", tty: true, background: true } } });
  await page.goto(`${world.url}/#/processes`);
  await page.locator(".list-row", { hasText: "in another program" }).click();
  const screen = page.locator(".screen");
  await screen.focus();
  await page.keyboard.type("echo far-$((40+2))\n");
  await screen.getByText("far-42").waitFor();
  await page.keyboard.press("Control+]");
  await page.getByRole("button", { name: "Kill" }).click();
  await page.getByRole("button", { name: "Yes" }).click();
  await page.getByText("The process has ended.").waitFor();
  await page.locator(".list-row", { hasText: "in another program" }).waitFor({ state: "detached" });
  other.stdin.end();
  await page.context().close();
}

async function follows_what_other_programs_do(world) {
  const page = await world.page();
  const command = "i=0; while sleep 0.2; do i=$((i+1)); echo far-$i; done";
  const other = spawn(world.program, ["-w", world.workspace, "call", "shell", JSON.stringify({ command })], { env: world.environment, stdio: "ignore" });
  const ended = new Promise((done) => other.once("exit", done));
  const running = page.locator(".card.running", { hasText: "far-$i" });
  // The command goes on until its output was seen in both places.
  await running.locator(".output", { hasText: "far-3" }).waitFor();
  await running.getByRole("link", { name: "shell" }).click();
  const seen = await page.locator(".detail .output").first().textContent();
  const last = Number(seen.match(/far-(\d+)\s*$/)[1]);
  await page.locator(".detail .output", { hasText: `far-${last + 3}` }).first().waitFor();
  await world.kill("far-");
  await ended;
  await page.locator(".detail .call-head .status:not(.running)").waitFor();
  await page.context().close();
}

async function adds_a_task_and_follows_it(world) {
  const page = await world.page();
  await page.goto(`${world.url}/#/inbox`);
  await page.getByLabel("A new task").fill("Count the notes");
  await page.getByRole("button", { name: "Add" }).click();
  const task = page.locator(".card", { hasText: "Count the notes" });
  const elsewhere = await world.api("POST", "/v1/inbox", { task: "Added by another program" });
  check(elsewhere.status === 201, "it wasn't added");
  await page.locator(".card", { hasText: "Added by another program" }).waitFor({ timeout: 3000 });
  await task.getByText("waiting").waitFor();
  const model = script(world, "worker.toml", '[[turns]]\ncalls = [{ tool = "read", args = { path = "notes.md" } }]\n[[turns]]\ntext = "There are three."\n');
  const worker = spawn(world.program, ["-w", world.workspace, "work", "--once", "--model", model], { env: world.environment, stdio: "ignore" });
  const ended = new Promise((done) => worker.once("exit", done));
  await task.getByText("There are three.").waitFor();
  await ended;
  await task.getByRole("link", { name: /run_/ }).click();
  await page.locator(".wrow", { hasText: "notes.md" }).waitFor();
  await page.context().close();
}

/** A program that is killed says nothing any more: what it did isn't at work for ever. */
async function shows_that_a_program_died(world) {
  const page = await world.page();
  const other = spawn(world.program, ["-w", world.workspace, "call", "shell", JSON.stringify({ command: "echo doomed; sleep 60" })], { env: world.environment, stdio: "ignore" });
  const running = page.locator(".card.running", { hasText: "doomed" });
  await running.locator(".output", { hasText: "doomed" }).waitFor();
  const run = (await running.getByRole("link", { name: /run_/ }).getAttribute("href")).match(/run_\w+/)[0];
  other.kill("SIGKILL");
  await running.waitFor({ state: "detached" });
  await page.goto(`${world.url}/#/run/${run}`);
  await page.getByText("cut off: its program died").waitFor();
  await page.locator(".wrow .status.lost").click();
  await page.locator(".detail .status.lost").waitFor();
  await page.goto(`${world.url}/#/runs`);
  await page.locator(".run-row", { hasText: "cut off" }).waitFor();
  await page.goto(`${world.url}/#/search?q=doomed`);
  await page.locator(".rules li", { hasText: "echo doomed" }).locator(".status.lost").waitFor();
  await page.reload();
  await page.goto(`${world.url}/#/now`);
  await page.getByText("No call runs at the moment.").waitFor();
  await page.context().close();
}

async function tells_who_answered_elsewhere(world) {
  const page = await world.page();
  const agent = await world.session("elsewhere");
  const pending = agent.call("edit", { path: "notes.md", find: "two", replace: "2" });
  const ask = card(page, "notes.md");
  await ask.waitFor();
  world.run("approvals", "deny", "last", "--reason", "not today");
  check((await pending).error.code === "approval_denied", "it wasn't denied");
  await page.locator(".note", { hasText: /ada.* denied edit .*notes\.md/ }).waitFor();
  await ask.waitFor({ state: "detached" });
  await page.goto(`${world.url}/#/approvals`);
  await page.getByText("“not today”").waitFor();
  const question = agent.call("ask", { question: "Which wind?", choices: [{ label: "North" }, { label: "South" }] });
  await page.locator(".card.question", { hasText: "Which wind?" }).waitFor();
  world.run("approvals", "answer", "last", "South");
  await question;
  await page.locator(".note", { hasText: /ada.* answered ask Which wind\?/ }).waitFor();
  await page.context().close();
}

/** A key is for the request that was read: not for one that took its place, nor for one that can't be seen. */
async function a_key_answers_what_was_read_and_can_be_seen(world) {
  const page = await world.page();
  for (const name of ["a", "b", "c"]) world.write(`${name}.md`, "old\n");
  const agent = await world.session("keys-of-asks");
  const ends = {};
  for (const name of ["a", "b", "c"]) {
    const call = agent.call("edit", { path: `${name}.md`, find: "old", replace: "new" });
    call.then((reply) => (ends[name] = reply.ok));
    await card(page, `${name}.md`).waitFor();
  }
  await page.goto(`${world.url}/#/approvals`);
  await until("all are shown", async () => (await page.locator(".card.approval").count()) === 3);
  const once = (name) => card(page, `${name}.md`).getByRole("button", { name: /Approve: once/ });
  await until("it is still", () => once("c").isEnabled());
  await page.keyboard.press("n");
  await page.locator(".card.approval.current", { hasText: "b.md" }).waitFor();
  const first = (await world.api("GET", "/v1/approvals")).json.approvals.find((it) => it.request.args.path === "a.md");
  await world.api("POST", `/v1/approvals/${first.id}`, { answer: "deny", hash: first.hash });
  await card(page, "a.md").waitFor({ state: "detached" });
  await until("it is still", () => once("b").isEnabled());
  await page.keyboard.press("1");
  await until("it is approved", () => "b" in ends || "c" in ends);
  check(ends.b === true && !("c" in ends), "another one was approved than was read");

  // Out of sight, nothing is approved.
  await page.setViewportSize({ width: 1280, height: 420 });
  await page.locator("main").evaluate((main) => {
    main.append(Object.assign(document.createElement("div"), { id: "far", style: "height: 2000px" }));
    main.scrollTop = main.scrollHeight;
  });
  await page.waitForTimeout(800);
  await page.keyboard.press("1");
  await page.waitForTimeout(400);
  check(!("c" in ends), "something was approved that nobody can see");
  await page.evaluate(() => document.getElementById("far").remove());
  await until("it is still", () => once("c").isEnabled());
  await until("it is approved", async () => (await page.keyboard.press("1"), "c" in ends));
  for (const name of ["a", "b", "c"]) world.remove(`${name}.md`);
  await page.context().close();
}

/** A proxy that can be cut, as a network between the browser and the server. */
class Cable {
  async open(port) {
    this.sockets = new Set();
    this.requests = "";
    this.isCut = false;
    this.server = createServer((near) => {
      if (this.isCut) return near.destroy();
      const far = connect(port, "127.0.0.1");
      for (const [one, other] of [[near, far], [far, near]]) {
        this.sockets.add(one);
        one.on("data", (bytes) => {
          if (one === near) this.requests += bytes;
          other.write(bytes);
        });
        one.on("close", () => other.destroy());
        one.on("error", () => other.destroy());
      }
      return undefined;
    });
    await new Promise((done) => this.server.listen(this.port ?? 0, "127.0.0.1", done));
    this.port = this.server.address().port;
    return this.port;
  }

  cut() {
    this.isCut = true;
    this.requests = "";
    for (const socket of this.sockets) socket.destroy();
  }
}

async function resumes_where_the_connection_was_cut(world) {
  const cable = new Cable();
  const port = await cable.open(world.port);
  await world.stop();
  await world.start("--allow-host", `127.0.0.1:${port}`, "--allow-origin", `http://127.0.0.1:${port}`);
  const agent = await world.session("cut");
  const page = await world.page({}, (link) => link.replace(`:${world.port}/`, `:${port}/`));
  await page.goto(`http://127.0.0.1:${port}/#/run/${agent.run}`);
  await agent.call("read", { path: "notes.md" });
  await page.getByText("1 call", { exact: false }).first().waitFor();
  cable.cut();
  await page.locator(".connection.lost").waitFor();
  await page.locator(".banner", { hasText: "The connection is lost" }).waitFor();
  for (let index = 0; index < 20; index++) await agent.call("list", {});
  cable.isCut = false;
  await page.locator(".connection.live").waitFor({ timeout: 20_000 });
  await page.getByText("21 calls").first().waitFor();
  check(/last-event-id: \S+-\d+/i.test(cable.requests), "the stream didn't go on where it was");
  check(!(await page.locator(".banner").count()), "the banner is still there");
  await page.context().close();
  cable.server.close();
  await world.stop();
  await world.start();
}

export const FOLLOWING = [
  watches_an_agent_work, types_into_a_process_of_another_program, follows_what_other_programs_do, adds_a_task_and_follows_it, shows_that_a_program_died, tells_who_answered_elsewhere,
  a_key_answers_what_was_read_and_can_be_seen, resumes_where_the_connection_was_cut,
];

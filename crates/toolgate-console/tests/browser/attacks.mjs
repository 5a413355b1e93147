// Attacks on the console: sign-in, other origins, frames, rebinding, requests of other pages, other sessions, and script in
// everything that a model or a file can say.
import { createServer } from "node:http";
import { check, script, until } from "./world.mjs";

const EVIL = `<img src=x onerror="document.title='owned'"><script>document.title='owned'</script>\u202e"'\`\${alert(1)}`;

async function attacks_on_sign_in(world) {
  const link = world.link();
  const page = await world.page();
  const [cookie] = await page.context().cookies();
  check(cookie.httpOnly && cookie.sameSite === "Strict" && cookie.name.endsWith(`-${world.port}`), JSON.stringify(cookie));
  check(!page.url().includes("once"), "the link stayed in the address");
  await page.context().close();
  const stranger = await (await world.browser.newContext()).newPage();
  await stranger.goto(link);
  await stranger.getByRole("heading", { name: "Now", exact: true }).waitFor();
  for (const used of [link, `${world.url}/#once=tgt_${"0".repeat(64)}`]) {
    const late = await (await world.browser.newContext()).newPage();
    await late.goto(used);
    await late.getByText(/was used already/).waitFor();
    await late.context().close();
  }
  await stranger.context().close();
}

/** Every route that changes something, as the document of the API lists them. */
async function attacks_from_other_pages(world) {
  const page = await world.page();
  const document = (await world.api("GET", "/openapi.json")).json;
  const [cookie] = await page.context().cookies();
  const send = (method, path, headers) => fetch(world.url + path, { method, headers: { Cookie: `${cookie.name}=${cookie.value}`, "Content-Type": "application/json", ...headers }, body: method === "POST" ? "{}" : undefined });
  let tried = 0;
  for (const [path, methods] of Object.entries(document.paths)) {
    for (const method of Object.keys(methods).filter((name) => name !== "get").map((name) => name.toUpperCase())) {
      const target = path.replace("{id}", "x").replace("{call}", "y");
      for (const headers of [{}, { "X-Toolgate-Console": "1" }, { Origin: world.url }, { Origin: "http://evil.example", "X-Toolgate-Console": "1" }, { Origin: "null", "X-Toolgate-Console": "1" }]) {
        const { status } = await send(method, target, headers);
        check(status === 403, `${method} ${path} with ${JSON.stringify(headers)} answered ${status}`);
        tried += 1;
      }
    }
  }
  check(tried >= 80, `only ${tried} were tried`);
  check((await send("GET", "/v1/runs", { Origin: "http://evil.example" })).status === 403, "another origin read");
  for (const path of ["/v1/runs", "/v1/nothing", "/openapi.json"]) {
    const policy = (await send("GET", path, {})).headers.get("content-security-policy") ?? "";
    check(policy.includes("default-src 'none'") && policy.includes("sandbox"), `${path} may do as a document: ${policy}`);
  }
  // `fetch` doesn't let a program name another host, so this goes by hand.
  const { request } = await import("node:http");
  const rebound = await new Promise((done) => request(`${world.url}/v1/runs`, { headers: { Host: `evil.example:${world.port}`, Cookie: `${cookie.name}=${cookie.value}` } }, (answer) => done(answer.statusCode)).end());
  check(rebound === 421, `a rebound name was served: ${rebound}`);

  // A page of another origin, in the very browser that is signed in.
  const evil = createServer((_, answer) => {
    answer.setHeader("Content-Type", "text/html");
    answer.end(`<iframe src="${world.url}/"></iframe><form id=f method=post enctype="text/plain" action="${world.url}/v1/undo"><input name='{"a' value='"}'></form>`);
  });
  await new Promise((done) => evil.listen(0, "127.0.0.1", done));
  const other = await page.context().newPage();
  await other.goto(`http://localhost:${evil.address().port}/`);
  const read = await other.evaluate((url) => fetch(`${url}/v1/runs`, { credentials: "include" }).then(() => "read", () => "refused"), world.url);
  check(read === "refused", "another origin read through the browser");
  const framed = await until("the frame is there", () => other.frames().find((frame) => frame !== other.mainFrame()));
  await other.waitForTimeout(500);
  check(!(await framed.content().catch(() => "")).includes("app"), "the page let itself be framed");
  await other.evaluate(() => document.getElementById("f").submit());
  await other.waitForURL(`${world.url}/v1/undo`);
  await until("the form of another page is refused", async () => (await other.content().catch(() => "")).includes("cross_origin"));
  evil.close();
  await page.context().close();
}

/** What was opened before a browser was signed out, or its time was over, tells it nothing afterwards. */
async function a_browser_that_is_signed_out_hears_nothing_more(world) {
  const agent = await world.session("signed-out");
  const ends = { out: () => world.run("console", "--sign-out-all"), over: () => world.expireSignIns() };
  for (const [name, end] of Object.entries(ends)) {
    const page = await world.page();
    const [cookie] = await page.context().cookies();
    const streams = [];
    for (const path of ["/v1/live", `/v1/runs/${agent.run}/events`]) {
      const stream = { heard: "", isOver: false };
      const headers = { Cookie: `${cookie.name}=${cookie.value}`, Accept: "text/event-stream" };
      const { body } = await fetch(world.url + path, { headers });
      (async () => {
        for await (const part of body) stream.heard += Buffer.from(part).toString();
      })().finally(() => (stream.isOver = true));
      streams.push(stream);
    }
    await agent.call("shell", { command: `echo before-${name}` });
    await until("both streams tell of it", () => streams.every((it) => it.heard.includes(`before-${name}`)));
    end();
    await until("both streams are over", () => streams.every((it) => it.isOver));
    await agent.call("shell", { command: `echo after-${name}` });
    check(!streams.some((it) => it.heard.includes(`after-${name}`)), "it was told what happened later");
    // The page itself says so, without anybody touching it.
    await page.getByText("Nobody is signed in").waitFor();
    check((await page.locator("body").innerText()).includes("toolgate console"), "it doesn't say how to sign in");
    await page.context().close();
  }
  await world.api("DELETE", "/v1/sessions/signed-out");
}

/** A session's token is what an agent has: everything of other runs, and everything of the workspace, is closed to it. */
async function sessions_see_only_their_own(world) {
  const [own, other] = [await world.session("own"), await world.session("other")];
  await other.call("write", { path: "others.txt", content: "x" });
  const abort = new AbortController();
  const stream = await fetch(`${world.url}/v1/live`, { headers: { Authorization: `Bearer ${own.token}` }, signal: abort.signal });
  let heard = "";
  const listening = (async () => {
    for await (const part of stream.body) heard += Buffer.from(part).toString();
  })().catch(() => {});
  await other.call("shell", { command: "echo others-output" });
  await world.api("POST", "/v1/inbox", { task: "others-task" });
  await own.call("shell", { command: "echo own-output" });
  await until("its own call is told", () => heard.includes("own-output"));
  abort.abort();
  await listening;
  check(!heard.includes(other.run) && !heard.includes("inbox.changed") && !heard.includes("others-output"), `it heard of others: ${heard}`);
  const call = (await world.api("GET", `/v1/runs/${other.run}/outline`)).json.rows[0].id;
  const closed = [`/v1/runs/${other.run}/outline`, `/v1/runs/${other.run}/calls/${call}`, `/v1/runs/${other.run}/events`, `/v1/changes?run=${other.run}`, `/v1/calls/${call}`, "/v1/policy", "/v1/quarantine", "/v1/doctor", "/v1/inbox"];
  for (const path of closed) {
    const { status } = await world.api("GET", path, undefined, own.token);
    check([403, 404].includes(status), `${path} answered ${status} to a session`);
  }
  for (const path of ["/v1/runs", "/v1/search?q=others", "/v1/approvals", "/v1/grants", "/v1/processes"]) {
    const { status, json } = await world.api("GET", path, undefined, own.token);
    const text = JSON.stringify(json);
    check(!text.includes(other.run) && !text.includes("others.txt"), `${path} (${status}) tells of others: ${text}`);
  }
  await world.api("DELETE", "/v1/sessions/own");
  await world.api("DELETE", "/v1/sessions/other");
}

async function nothing_that_models_and_files_say_runs(world) {
  const name = "evil <img src=x onerror=document.title='owned'>.txt";
  world.write(name, `${EVIL}\nsecond\n`);
  const agent = await world.session("evil");
  await agent.call(EVIL, { path: EVIL });
  await agent.call("read", { path: name });
  await agent.call("shell", { command: `printf '%s' '<script>document.title="owned"</script>'; printf '\\033]0;owned\\007' # ${EVIL.replaceAll("'", "")}` });
  await agent.call("write", { path: "made <b>.html", content: EVIL });
  await agent.call("display", { content: EVIL, title: EVIL, level: "warning" });
  world.write("make-evil.sh", "mkdir -p .vscode && printf '<img src=x onerror=alert(1)>' > '.vscode/<img src=x onerror=alert(1)>.json'; cp '.vscode/<img src=x onerror=alert(1)>.json' .vscode/tasks.json\n");
  await agent.call("shell", { command: "sh make-evil.sh" });
  await agent.call("shell", { command: `printf '<script>document.title="owned"</script>\\033]0;owned\\007'; sleep 60 # <img src=x>`, background: true });
  const turn = (calls) => `[[turns]]\ntext = ${JSON.stringify(EVIL)}\n${calls}`;
  world.run("run", `Do ${EVIL}`, "--model", script(world, "evil-turns.toml", turn(`calls = [{ tool = "list", args = {} }]\n`) + turn("")));
  agent.call("edit", { path: name, find: "second", replace: EVIL });
  agent.call("ask", { question: EVIL, choices: [{ label: EVIL.slice(0, 60), description: EVIL }] });
  await world.api("POST", "/v1/inbox", { task: EVIL });
  const page = await world.page();
  const asked = (wanted) => until("it waits", async () => (await world.api("GET", "/v1/approvals")).json.approvals.find((it) => it.request.args.replace === wanted));
  const granted = agent.call("edit", { path: name, find: "<img src=x", replace: "granted" });
  const { id, hash } = await asked("granted");
  await world.api("POST", `/v1/approvals/${id}`, { answer: "approve", scope: "session", hash });
  await granted;
  const denied = agent.call("edit", { path: "src/main.rs", find: "hello", replace: "denied" });
  const rows = (await world.api("GET", `/v1/runs/${agent.run}/outline?limit=100`)).json.rows;
  const processes = (await world.api("GET", "/v1/processes")).json.processes;
  const { quarantined } = (await world.api("GET", "/v1/quarantine")).json;
  const { grants } = (await world.api("GET", "/v1/grants")).json;
  check(processes.length && quarantined.length && grants.length, "there is nothing to show");
  const agentRun = (await world.api("GET", "/v1/runs?limit=20")).json.runs.find((run) => run.task?.includes("onerror"));
  const places = [`#/run/${agentRun.id}`, "#/now", "#/approvals", "#/runs", `#/run/${agent.run}`, `#/changes?run=${agent.run}`, "#/quarantine", "#/processes", ...processes.map((it) => `#/processes/${it.id}`), "#/grants", "#/policy", "#/inbox", "#/tools", `#/search?q=${encodeURIComponent("<img")}`, `#/${encodeURIComponent(EVIL)}`, ...rows.map((row) => `#/run/${agent.run}/call/${encodeURIComponent(row.id)}`)];
  for (const place of places) {
    await page.goto(`${world.url}/${place}`);
    await page.waitForTimeout(250);
    check(!(await page.title()).includes("owned"), `a script ran at ${place}`);
    check((await page.locator("#app img, #app script").count()) === 0, `markup was made at ${place}`);
  }
  // What somebody says of an answer is text, too.
  await page.goto(`${world.url}/#/approvals`);
  const last = await asked("denied");
  await world.api("POST", `/v1/approvals/${last.id}`, { answer: "deny", reason: EVIL, hash: last.hash });
  await denied;
  await page.getByText("“<img src=x").waitFor();
  check((await page.locator("#app img, #app script").count()) === 0, "markup was made of a reason");
  await page.context().close();
  await world.api("DELETE", "/v1/sessions/evil");
}

export const ATTACKS = [attacks_on_sign_in, attacks_from_other_pages, a_browser_that_is_signed_out_hears_nothing_more, sessions_see_only_their_own, nothing_that_models_and_files_say_runs];

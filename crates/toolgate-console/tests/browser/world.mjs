// A throw-away workspace with a server, and browsers that are signed in to it.
import { spawn, execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, writeFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { chromium } from "playwright-core";

const BROWSERS = ["/usr/bin/chromium-headless-shell", "/usr/bin/chromium"];

export class World {
  /** In a directory of its own, or in one that is named and shown in pictures. */
  constructor(program, { root = mkdtempSync(join(tmpdir(), "toolgate-console-")), name = "workspace" } = {}) {
    this.program = program;
    this.root = root;
    this.workspace = join(this.root, name);
    this.home = join(this.root, "home");
    mkdirSync(join(this.workspace, "src"), { recursive: true });
    mkdirSync(this.home);
    this.environment = { PATH: process.env.PATH, HOME: this.home, USER: "ada", LANG: "C.UTF-8", ...(process.env.TOOLGATE_PAGE_FROM ? { TOOLGATE_PAGE_FROM: process.env.TOOLGATE_PAGE_FROM } : {}) };
    this.write("src/main.rs", 'fn main() {\n    println!("hello");\n}\n');
    this.write("notes.md", "one\ntwo\nthree\n");
    this.write("toolgate.toml", '[[rules]]\ndecision = "ask"\ntool = "edit"\n');
    mkdirSync(join(this.home, ".config/toolgate"), { recursive: true });
    writeFileSync(join(this.home, ".config/toolgate/config.toml"), '[model]\ndefault = "scripted:turns.toml"\ninput_price = 2.0\noutput_price = 10.0\ncurrency = "€"\n');
    this.port = 0;
    this.faults = [];
  }

  write(path, text) {
    writeFileSync(join(this.workspace, path), text);
  }

  remove(path) {
    rmSync(join(this.workspace, path), { force: true });
  }

  read(path) {
    return readFileSync(join(this.workspace, path), "utf8");
  }

  run(...words) {
    return execFileSync(this.program, ["-w", this.workspace, ...words], { env: this.environment, encoding: "utf8" }).trim();
  }

  /** The names in the workspace. */
  files() {
    return readdirSync(this.workspace);
  }

  async start(...more) {
    const words = ["-w", this.workspace, "--json", "serve", "--listen", `127.0.0.1:${this.port}`, ...more];
    this.server = spawn(this.program, words, { env: this.environment, stdio: ["ignore", "pipe", "inherit"] });
    const lines = createInterface({ input: this.server.stdout });
    const line = await new Promise((done, fail) => {
      lines.once("line", done);
      this.server.once("exit", (code) => fail(new Error(`the server ended with ${code}`)));
    });
    const ready = JSON.parse(line);
    this.url = ready.listening;
    this.port = new URL(this.url).port;
    this.token = readFileSync(ready.token_file, "utf8").trim();
  }

  async stop(signal = "SIGTERM") {
    this.server.removeAllListeners("exit");
    const ended = new Promise((done) => this.server.once("exit", done));
    this.server.kill(signal);
    await Promise.race([ended, new Promise((done) => setTimeout(done, 8000))]);
  }

  async api(method, path, body, token = this.token) {
    const headers = { Authorization: `Bearer ${token}` };
    if (body !== undefined) headers["Content-Type"] = "application/json";
    const response = await fetch(this.url + path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
    const text = await response.text();
    return { status: response.status, json: text ? JSON.parse(text) : null };
  }

  /** A session of an agent that calls tools; the calls wait for approvals. */
  async session(id) {
    const { json } = await this.api("POST", "/v1/sessions", { id, wait_seconds: 600 });
    const call = (name, args) => this.api("POST", "/v1/calls", { name, args }, json.token).then((answer) => answer.json);
    return { ...json, call };
  }

  /** Kills the command that has this text, whichever program runs it. */
  async kill(text) {
    const { processes } = (await this.api("GET", "/v1/processes")).json;
    const found = processes.find((it) => it.command.includes(text));
    check(found, `no process has ${text}`);
    await this.api("POST", `/v1/processes/${found.id}/stop`, {});
  }

  /** Denies what still waits, so that a test that failed leaves nothing to the next one. */
  async denyAll() {
    for (const { id, hash } of (await this.api("GET", "/v1/approvals")).json.approvals) await this.api("POST", `/v1/approvals/${id}`, { answer: "deny", hash });
    for (const { id } of (await this.api("GET", "/v1/questions")).json.questions) await this.api("POST", `/v1/questions/${id}`, { answer: "1" });
  }

  /** Lets the time of every browser that is signed in be over. */
  expireSignIns() {
    const sessions = join(this.home, ".local/state/toolgate/console/sessions");
    for (const name of readdirSync(sessions)) {
      const ticket = JSON.parse(readFileSync(join(sessions, name), "utf8"));
      writeFileSync(join(sessions, name), JSON.stringify({ ...ticket, expires: "2020-01-01T00:00:00Z" }), { mode: 0o600 });
    }
  }

  link() {
    return this.run("console");
  }

  async launch() {
    const executablePath = BROWSERS.find((path) => {
      try {
        readFileSync(path, { flag: "r" });
        return true;
      } catch {
        return false;
      }
    });
    this.browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
  }

  /** A browser of its own, signed in. Every error and every violation of the content policy is a fault of the test. */
  async page(options = {}, through = (link) => link) {
    const context = await this.browser.newContext({ viewport: { width: 1280, height: 860 }, locale: "en-GB", ...options });
    context.setDefaultTimeout(10_000);
    const page = await context.newPage();
    this.watch(page);
    await page.goto(through(this.link()));
    await page.getByRole("heading", { name: "Now", exact: true }).waitFor();
    await page.locator(".connection.live").waitFor();
    return page;
  }

  watch(page) {
    const expected = /Failed to load resource|ERR_CONNECTION|ERR_INCOMPLETE|ERR_INTERNET_DISCONNECTED|ERR_EMPTY/;
    page.on("pageerror", (error) => this.faults.push(`error: ${error.message}`));
    page.on("console", (message) => {
      if (message.type() === "error" && !expected.test(message.text())) this.faults.push(message.text());
    });
    page.on("dialog", (dialog) => {
      this.faults.push(`a dialog opened: ${dialog.message()}`);
      dialog.dismiss();
    });
  }

  async close() {
    await this.browser?.close();
    await this.stop().catch(() => {});
    rmSync(this.root, { recursive: true, force: true });
  }
}

/** The approval request that has this text. */
export const card = (page, text) => page.locator(".card.approval", { hasText: text });

/** The scripted model's turns, in the workspace. */
export function script(world, name, text) {
  world.write(name, text);
  return `scripted:${join(world.workspace, name)}`;
}

export function check(is, words) {
  if (!is) throw new Error(words);
}

export async function until(what, look, ms = 15_000) {
  const end = Date.now() + ms;
  for (;;) {
    const found = await look();
    if (found) return found;
    if (Date.now() > end) throw new Error(`timed out waiting until ${what}`);
    await new Promise((done) => setTimeout(done, 50));
  }
}

/** Whether something reaches beyond the page, the content or the call beside it, so that it had to be scrolled sideways. */
export const isTooWide = (page) => page.evaluate(() => [document.documentElement, ...document.querySelectorAll("main, .detail")].some((it) => it.scrollWidth > it.clientWidth + 1));

/** Presses the key that denies, and gives the button that sends the denial. A page that was just drawn doesn't listen to keys yet. */
export async function denyByKey(page) {
  const deny = page.getByRole("button", { name: "Deny", exact: true });
  await until("a reason is asked for", async () => {
    await page.keyboard.press("d");
    return deny.isVisible();
  });
  return deny;
}

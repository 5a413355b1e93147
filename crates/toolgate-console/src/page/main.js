// The page: navigation, the state of the connection, and the view that the address names.
import { html, render, useEffect, useRef, useState, effect } from "./core.js";
import { loadSession, remove, signedIn, signInFromAddress } from "./api.js";
import { connect, connection, disconnect, loadQueue, running, waiting } from "./live.js";
import { Icon, Mark } from "./icons.js";
import { note, noteError, notes } from "./parts.js";
import { go, route, to } from "./router.js";
import { tables, useKeys } from "./keys.js";
import { NowView } from "./view_now.js";
import { RunsView } from "./view_runs.js";
import { RunView } from "./view_run.js";
import { ApprovalsView } from "./view_approvals.js";
import { ChangesView } from "./view_changes.js";
import { QuarantineView } from "./view_quarantine.js";
import { ProcessesView } from "./view_processes.js";
import { PolicyView } from "./view_policy.js";
import { GrantsView } from "./view_grants.js";
import { ToolsView } from "./view_tools.js";
import { InboxView } from "./view_inbox.js";
import { DoctorView } from "./view_doctor.js";
import { SearchView } from "./view_search.js";
import { SignIn } from "./view_signin.js";

const GROUPS = [
  {
    title: "Work",
    views: [
      { name: "now", title: "Now", key: "n", view: NowView },
      { name: "approvals", title: "Waiting", key: "a", view: ApprovalsView },
      { name: "runs", title: "Runs", key: "r", view: RunsView },
      { name: "inbox", title: "Inbox", key: "i", view: InboxView },
    ],
  },
  {
    title: "Workspace",
    views: [
      { name: "changes", title: "Changes", key: "c", view: ChangesView },
      { name: "quarantine", title: "Quarantine", key: "q", view: QuarantineView },
      { name: "processes", title: "Processes", key: "x", view: ProcessesView },
    ],
  },
  {
    title: "Rules",
    views: [
      { name: "policy", title: "Policy", key: "p", view: PolicyView },
      { name: "grants", title: "Grants", key: "g", view: GrantsView },
      { name: "tools", title: "Tools", key: "t", view: ToolsView },
      { name: "doctor", title: "Doctor", key: "d", view: DoctorView },
    ],
  },
];

// Search is at the top of the page, where every view has it.
const VIEWS = [...GROUPS.flatMap((group) => group.views), { name: "search", title: "Search", key: "s", view: SearchView }];

const THEMES = ["system", "dark", "light"];

function useTheme() {
  const [theme, setTheme] = useState(localStorage.getItem("toolgate.theme") ?? "system");
  useEffect(() => {
    document.documentElement.dataset.theme = theme;
    localStorage.setItem("toolgate.theme", theme);
  }, [theme]);
  return [theme, () => setTheme(THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length])];
}

function useNotices() {
  const [isOn, setOn] = useState(localStorage.getItem("toolgate.notices") === "on" && globalThis.Notification?.permission === "granted");
  const set = (wanted) => {
    localStorage.setItem("toolgate.notices", wanted ? "on" : "off");
    setOn(wanted);
  };
  const toggle = async () => {
    if (isOn) return set(false);
    const isGranted = "Notification" in globalThis && (await Notification.requestPermission()) === "granted";
    const isShown = isGranted && notify("Notices are on.");
    if (!isShown) note("This browser doesn't let this page show notices.");
    return set(isShown);
  };
  return [isOn, toggle];
}

/** Shows a notice, and says whether the browser can: on phones some have the name, but not for pages. */
function notify(body) {
  try {
    return Boolean(new Notification("Toolgate", { body, tag: "toolgate" }));
  } catch {
    return false;
  }
}

// A notice says that something waits, never what.
let noticed = 0;
effect(() => {
  const waits = waiting.value.length;
  document.title = waits ? `(${waits}) Toolgate` : "Toolgate";
  if (waits > noticed && document.hidden && localStorage.getItem("toolgate.notices") === "on" && globalThis.Notification?.permission === "granted") {
    notify("Something waits for your answer.");
  }
  noticed = waits;
});

function Help({ close }) {
  const sheet = useRef(/** @type {HTMLDialogElement} */ (null));
  useEffect(() => {
    const dialog = sheet.current;
    dialog.showModal();
    // From its beginning, not from the button below everything.
    dialog.querySelector("h2").focus();
    return () => dialog.close();
  }, []);
  return html`<dialog id="help" ref=${sheet} aria-labelledby="help-title" onClose=${close} onClick=${(event) => event.target.id === "help" && close()}>
    <header class="call-head"><h2 id="help-title" tabindex="-1">Keys</h2><button type="button" class="bare" aria-label="Close" onClick=${close}><${Icon} name="close" /></button></header>
    ${tables.value.map((table) => html`<section key=${table.title}><h3>${table.title}</h3><dl class="keys">${table.keys.filter((entry) => entry.does).map((entry) => html`<div key=${entry.key}><dt>${(entry.shown ?? entry.key).split(" ").map((key) => html`<kbd>${key}</kbd> `)}</dt><dd>${entry.does}</dd></div>`)}</dl></section>`)}
    <section><h3>Lists</h3><dl class="keys"><div><dt><kbd>j</kbd> <kbd>k</kbd></dt><dd>down, up</dd></div><div><dt><kbd>Enter</kbd></dt><dd>open</dd></div><div><dt><kbd>←</kbd> <kbd>→</kbd></dt><dd>close, open a branch</dd></div></dl></section>
  </dialog>`;
}

function Connection() {
  const words = { live: "Live", connecting: "Connecting…", lost: "Connection lost; trying again…" };
  return html`<span class="connection ${connection.value}" role="status"><span class="dot" aria-hidden="true"></span>${words[connection.value]}</span>`;
}

function Navigation({ current, isOpen, close }) {
  const waits = waiting.value.length;
  const counts = { approvals: waits, now: Object.values(running.value).filter((call) => !call.waiting).length };
  return html`<nav class=${isOpen ? "open" : ""} aria-label="Views">
    ${GROUPS.map((group, index) => html`${index > 0 && html`<h2 id=${`group-${index}`}>${group.title}</h2>`}<ul key=${group.title} aria-labelledby=${index > 0 ? `group-${index}` : undefined}>
      ${group.views.map(({ name, title }) => html`<li key=${name}><a href=${to([name])} aria-current=${current === name ? "page" : undefined} onClick=${close}><${Icon} name=${name} />${title}${counts[name] > 0 && html` <span class="count ${name === "approvals" ? "hot" : ""}">${counts[name]}</span>`}</a></li>`)}
    </ul>`)}
  </nav>`;
}

/** The workspace's own name, behind the directories that it is in. */
function WorkspaceName({ path }) {
  const cut = path.lastIndexOf("/") + 1;
  return html`<span class="workspace" title=${path}><span class="parents">${path.slice(0, cut)}</span><strong>${path.slice(cut) || path}</strong></span>`;
}

function Shell() {
  const [isHelp, setHelp] = useState(false);
  const [isMenu, setMenu] = useState(false);
  const [theme, nextTheme] = useTheme();
  const [hasNotices, toggleNotices] = useNotices();
  const { parts } = route.value;
  const session = signedIn.value;
  const current = parts[0] === "run" ? "runs" : parts[0];
  useKeys("Everywhere", [
    { key: "?", does: "this sheet", run: () => setHelp(true) },
    { key: "/", does: "search", run: () => go(["search"]) },
    ...VIEWS.map(({ name, title, key }) => ({ key: `g ${key}`, does: title.toLowerCase(), run: () => go([name]) })),
  ]);
  useEffect(() => {
    setMenu(false);
    const title = document.querySelector("main h1");
    if (title instanceof HTMLElement) title.focus({ preventScroll: true });
  }, [parts[0], parts[1]]);
  const signOut = async () => {
    try {
      await remove("/v1/console/session");
    } catch (error) {
      if (error.status !== 401) return noteError(error);
    }
    disconnect();
    signedIn.value = null;
  };
  const found = VIEWS.find(({ name }) => name === parts[0]);
  const View = found?.view ?? NowView;
  return html`<a class="skip" href="#main" onClick=${(event) => { event.preventDefault(); document.getElementById("main").focus(); }}>To the content</a>
    <header class="top">
      <button type="button" class="menu bare" aria-expanded=${isMenu ? "true" : "false"} aria-label="Menu" onClick=${() => setMenu(!isMenu)}><${Icon} name="menu" /></button>
      <a class="brand" href=${to(["now"])}><${Mark} />Toolgate</a>
      <${WorkspaceName} path=${session.workspace} />
      <span class="badge preset" title="The preset of its policy">${session.preset}</span>
      <span class="grow"></span>
      <a class="find" href=${to(["search"])} aria-label="Search" aria-current=${current === "search" ? "page" : undefined}><${Icon} name="search" /><span aria-hidden="true">Search</span><kbd aria-hidden="true">/</kbd></a>
      <${Connection} />
      <details class="who"><summary>${session.owner}</summary><div class="who-menu">
        <p class="meta">Version ${session.version}${session.expires && html`<br />Signed in until ${new Date(session.expires).toLocaleTimeString()}`}</p>
        <button type="button" onClick=${nextTheme}>Theme: ${theme}</button>
        <button type="button" onClick=${toggleNotices}>Notices: ${hasNotices ? "on" : "off"}</button>
        <button type="button" onClick=${() => setHelp(true)}>Keys <kbd>?</kbd></button>
        <button type="button" onClick=${signOut}>Sign out</button>
      </div></details>
    </header>
    ${session.warning && html`<p class="banner warn" role="alert">${session.warning}</p>`}
    ${connection.value === "lost" && html`<p class="banner" role="alert">The connection is lost. What you see may be old; it is tried again by itself.</p>`}
    <div class="frame">
      <${Navigation} current=${current} isOpen=${isMenu} close=${() => setMenu(false)} />
      <main id="main" tabindex="-1" class=${parts[0] === "run" ? "full" : ""}>${parts[0] === "run" && parts[1] ? html`<${RunView} key=${parts[1]} run=${parts[1]} />` : html`<${View} key=${parts[0]} />`}</main>
    </div>
    <div class="notes" aria-live="polite">${notes.value.map((it) => html`<p key=${it.id} class="note ${it.kind}">${it.text}</p>`)}</div>
    ${isHelp && html`<${Help} close=${() => setHelp(false)} />`}`;
}

function App({ error }) {
  useEffect(() => {
    if (signedIn.value) {
      connect();
      loadQueue();
    } else disconnect();
  }, [Boolean(signedIn.value)]);
  if (signedIn.value === undefined) return html`<p class="boot">Toolgate</p>`;
  if (signedIn.value === null) return html`<${SignIn} error=${error} />`;
  return html`<${Shell} />`;
}

async function start() {
  const root = document.getElementById("app");
  document.documentElement.dataset.theme = localStorage.getItem("toolgate.theme") ?? "system";
  let failed = null;
  try {
    await signInFromAddress();
  } catch (error) {
    failed = error;
  }
  route.value = { ...route.value };
  try {
    await loadSession();
  } catch (error) {
    failed ??= error;
    signedIn.value = null;
  }
  root.replaceChildren();
  render(html`<${App} error=${failed} />`, root);
}

addEventListener("hashchange", () => location.hash.startsWith("#once=") && location.reload());
start();

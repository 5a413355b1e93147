// Policy: the rules in force by layer and origin, how a command or a call would be judged, and what a draft would change.
import { html, useMemo, useState } from "./core.js";
import { get, post } from "./api.js";
import { CallLink, Decision, Empty, Failure, Heading, Loading, useLoaded, When, Words } from "./parts.js";
import { counted } from "./format.js";
import { CommandParts, Why } from "./why.js";
import { route, setQuery } from "./router.js";

const LAYERS = ["managed", "user", "workspace", "flags", "builtin"];

/** A rule without the word that its badge says already. */
const withoutDecision = ({ rule, decision }) => (rule.startsWith(`${decision} `) ? rule.slice(decision.length + 1) : rule);

function Rules({ policy }) {
  const [text, setText] = useState("");
  const wanted = text.toLowerCase();
  const rules = useMemo(() => policy.rules.filter((rule) => !wanted || `${rule.rule} ${rule.reason} ${rule.source}`.toLowerCase().includes(wanted)), [policy, wanted]);
  return html`<p class="toolbar"><span>Preset <strong>${policy.preset}</strong>${policy.unattended ? " (unattended: what would ask is refused)" : ""}</span> <input type="search" class="filter" placeholder="Search rules" aria-label="Search rules" value=${text} onInput=${(event) => setText(event.target.value)} /></p>
    ${LAYERS.map((layer) => {
      const own = rules.filter((rule) => rule.layer === layer);
      if (!own.length) return null;
      return html`<section key=${layer}><h2 class="section">${layer} <span class="count">${own.length}</span></h2>
        <ul class="rules">${own.map((rule, index) => html`<li key=${index}><span class="rule-badge"><${Decision} decision=${rule.decision} /></span> <span class="what"><code>${withoutDecision(rule)}</code> <span class="meta"><${Words} text=${rule.reason} /></span></span> <span class="layer">${rule.source}</span></li>`)}</ul></section>`;
    })}
    ${rules.length === 0 && html`<${Empty} icon="policy">No rule contains that.<//>`}`;
}

function Try() {
  const [kind, setKind] = useState("command");
  const [command, setCommand] = useState("");
  const [tool, setTool] = useState("read");
  const [args, setArgs] = useState('{"path": ".env"}');
  const [result, setResult] = useState(null);
  const [error, setError] = useState(null);
  const judge = async (event) => {
    event.preventDefault();
    try {
      const body = kind === "command" ? { command } : { tool, args: JSON.parse(args || "{}") };
      setResult(await post("/v1/policy/check", body));
      setError(null);
    } catch (problem) {
      setResult(null);
      setError(problem);
    }
  };
  return html`<form class="form" onSubmit=${judge}>
      <div class="tabs" role="group" aria-label="What to judge">
        <button type="button" aria-pressed=${kind === "command" ? "true" : "false"} onClick=${() => setKind("command")}>A command</button>
        <button type="button" aria-pressed=${kind === "call" ? "true" : "false"} onClick=${() => setKind("call")}>A call</button>
      </div>
      ${kind === "command"
        ? html`<label for="try-command">Command line</label><textarea id="try-command" class="mono" rows="3" value=${command} onInput=${(event) => setCommand(event.target.value)} placeholder="git status && rm -rf build"></textarea>`
        : html`<label for="try-tool">Tool</label><input id="try-tool" class="mono" value=${tool} onInput=${(event) => setTool(event.target.value)} /><label for="try-args">Arguments, as JSON</label><textarea id="try-args" class="mono" rows="3" value=${args} onInput=${(event) => setArgs(event.target.value)}></textarea>`}
      <p><button type="submit" class="primary">Judge it</button> <span class="muted">Nothing runs.</span></p>
    </form>
    ${error && html`<${Failure} error=${{ message: error.message, hint: error.hint ?? "" }} />`}
    ${result && html`<div class="card"><${Why} verdict=${result.verdict} effects=${result.effects} />${(result.parts.length > 0 || result.fault) && html`<h3>As it was read</h3><${CommandParts} parts=${result.parts} fault=${result.fault} />`}</div>`}`;
}

function Replay({ policy }) {
  const fileOf = (wanted) => policy.files.find((file) => file.layer === wanted)?.text ?? 'preset = "read-only"\n';
  const [layer, setLayer] = useState("user");
  const [draft, setDraft] = useState(fileOf("user"));
  const [result, setResult] = useState(null);
  const [error, setError] = useState(null);
  const [isBusy, setBusy] = useState(false);
  const choose = (event) => {
    // What was written stays; a draft that nobody has touched is that layer's own file.
    if (draft === fileOf(layer)) setDraft(fileOf(event.target.value));
    setLayer(event.target.value);
  };
  const replay = async (event) => {
    event.preventDefault();
    setBusy(true);
    try {
      setResult(await post("/v1/policy/replay", { draft, layer }));
      setError(null);
    } catch (problem) {
      setError(problem);
    }
    setBusy(false);
  };
  return html`<form class="form" onSubmit=${replay}>
      <label for="draft">Draft of a configuration file. It is judged against past runs; nothing is written.</label>
      <textarea id="draft" class="mono" rows="10" spellcheck="false" value=${draft} onInput=${(event) => setDraft(event.target.value)}></textarea>
      <p class="toolbar"><label class="inline">In place of <select value=${layer} onChange=${choose}><option value="user">the user's file</option><option value="workspace">the workspace's file</option></select></label>
      <button type="submit" class="primary" disabled=${isBusy}>${isBusy ? "Judging…" : "Replay past runs"}</button></p>
    </form>
    <${Failure} error=${error} />
    ${result && html`<section aria-live="polite"><p><strong>${counted(result.differing, "call")}</strong> of ${counted(result.judged, "call")} in ${counted(result.runs, "run")} would be decided otherwise.${result.unjudged > 0 ? ` ${counted(result.unjudged, "call")} can't be judged any more.` : ""}</p>
      ${result.warnings.map((warning, index) => html`<p key=${index} class="warn">${warning}</p>`)}
      <ul class="rules differences">${result.differences.map((it, index) => html`<li key=${index}><span class="verdicts"><${Decision} verdict=${it.was} /> → <${Decision} verdict=${it.now} /></span> <span class="what"><${CallLink} run=${it.run} call=${it.call}><span class="tool">${it.tool}</span><//> <span class="call-text">${it.what}</span> <span class="meta"><${Words} text=${it.reason} /></span></span> <span class="layer"><${When} at=${it.time} /></span></li>`)}</ul></section>`}`;
}

export function PolicyView() {
  const tab = route.value.query.tab ?? "rules";
  const loaded = useLoaded(() => get("/v1/policy"), []);
  const tabs = { rules: "Rules", try: "Try", replay: "Replay" };
  return html`<${Heading} title="Policy"><div class="tabs" role="group" aria-label="Part of policy">${Object.entries(tabs).map(([name, title]) => html`<button type="button" key=${name} aria-pressed=${tab === name ? "true" : "false"} onClick=${() => setQuery({ tab: name })}>${title}</button>`)}</div><//>
    <${Failure} error=${loaded.error} again=${loaded.again} />
    ${!loaded.value && !loaded.error && html`<${Loading} />`}
    ${loaded.value && (tab === "try" ? html`<${Try} />` : tab === "replay" ? html`<${Replay} policy=${loaded.value} />` : html`<${Rules} policy=${loaded.value} />`)}`;
}

// Now: what waits for the person, what is at work with its output as it comes, and the last runs.
import { html } from "./core.js";
import { get } from "./api.js";
import { running, ticks, waiting } from "./live.js";
import { CallLink, Empty, Failure, Heading, Output, RunLink, Status, useLoaded, useNow } from "./parts.js";
import { duration, shortId } from "./format.js";
import { WaitingCards } from "./view_approvals.js";
import { RunRowLine } from "./view_runs.js";
import { to } from "./router.js";

function RunningCall({ call, now }) {
  return html`<article class="card running" aria-label=${`Running: ${call.tool}`}>
    <header>
      <h3><${Status} is="running" /><${CallLink} run=${call.run} call=${call.call}><span class="tool">${call.tool || "call"}</span><//><span class="call-text">${call.text}</span></h3>
      <span class="meta">${duration(now - new Date(call.since).getTime())} · <${RunLink} run=${call.run}>${shortId(call.run)}<//></span>
    </header>
    ${call.output && html`<${Output} text=${call.output} label=${`Output of ${call.tool}`} />`}
  </article>`;
}

/** What somebody sees first: how something comes onto this page. */
const Welcome = () => html`<${Empty} icon="now">Nothing has run in this workspace yet. Whatever runs is shown here at once.<ul class="steps">
  <li><span><code>toolgate demo</code></span><span>an agent at work, without any key</span></li>
  <li><span><code>toolgate run "…" --model …</code></span><span>a task for a model</span></li>
  <li><span><code>toolgate call list</code></span><span>one call through the gate</span></li>
  <li><span><code>toolgate init --for claude</code></span><span>gives these tools to a client that you use: Claude Code, Codex, Copilot and others</span></li>
</ul><//>`;

export function NowView() {
  const now = useNow();
  const calls = Object.values(running.value).filter((call) => !call.waiting);
  const waits = waiting.value.length;
  const runs = useLoaded(() => get("/v1/runs?limit=12"), [ticks.value.runs]);
  // A session that has done nothing yet, as each server has one, is found beneath Runs.
  const last = runs.value?.runs.filter((run) => run.calls > 0 || run.task).slice(0, 8);
  return html`<${Heading} title="Now" />
    ${waits > 0 && html`<section aria-labelledby="waits"><h2 id="waits" class="section">Waiting for you <span class="count">${waits}</span></h2><${WaitingCards} /></section>`}
    <section aria-labelledby="at-work">
      <h2 id="at-work" class="section">At work <span class="count">${calls.length}</span></h2>
      ${calls.length === 0 && html`<${Empty}>No call runs at the moment.<//>`}
      ${calls.slice(0, 20).map((call) => html`<${RunningCall} key=${call.call} call=${call} now=${now} />`)}
    </section>
    <section aria-labelledby="last-runs">
      <h2 id="last-runs" class="section">Last runs <a class="more" href=${to(["runs"])}>all</a></h2>
      <${Failure} error=${runs.error} again=${runs.again} />
      <div class="table">${last?.map((run) => html`<${RunRowLine} key=${run.id} run=${run} now=${now} />`)}</div>
      ${last?.length === 0 && html`<${Welcome} />`}
    </section>`;
}

// Which guarantees hold on this machine, and how to fix those that don't.
import { html } from "./core.js";
import { get } from "./api.js";
import { Failure, Heading, useLoaded, Words } from "./parts.js";

const KINDS = { held: "plus", partly: "warn", not_held: "bad" };

export function DoctorView() {
  const loaded = useLoaded(() => get("/v1/doctor"), []);
  const mark = { held: ["✓", "held"], partly: ["◐", "partly held"], not_held: ["✕", "not held"] };
  const checks = loaded.value?.checks;
  return html`<${Heading} title="Doctor" note="Which guarantees hold here"><button type="button" class="small" onClick=${loaded.again}>Check again</button><//>
    <${Failure} error=${loaded.error} again=${loaded.again} />
    ${!loaded.value && !loaded.error && html`<p class="empty" aria-live="polite">Checking; a command is confined to see what holds…</p>`}
    ${checks && html`<p class="tally">${Object.entries(mark).map(([state, [sign, words]]) => {
      const count = checks.filter((check) => check.state === state).length;
      return count > 0 && html`<span key=${state}><span class=${KINDS[state]} aria-hidden="true">${sign}</span> <strong>${count}</strong> ${words}</span>`;
    })}</p>`}
    <ul class="checks">${checks?.map((check, index) => html`<li key=${index} class="${check.state} ${check.name.startsWith(" ") ? "part" : ""}">
      <span class="sign" role="img" aria-label=${mark[check.state]?.[1]}>${mark[check.state]?.[0]}</span><strong>${check.name.trim()}</strong> <span><${Words} text=${check.found} /></span>
      ${check.remedy && html`<div class="remedy"><${Words} text=${check.remedy} /></div>`}</li>`)}</ul>`;
}

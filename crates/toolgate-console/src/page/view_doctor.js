// Which guarantees hold on this machine, and how to fix those that don't.
import { html } from "./core.js";
import { get } from "./api.js";
import { Failure, Heading, useLoaded, Words } from "./parts.js";

export function DoctorView() {
  const loaded = useLoaded(() => get("/v1/doctor"), []);
  const mark = { held: ["✓", "held"], partly: ["◐", "partly held"], not_held: ["✕", "not held"] };
  return html`<${Heading} title="Doctor" note="Which guarantees hold here"><button type="button" class="small" onClick=${loaded.again}>Check again</button><//>
    <${Failure} error=${loaded.error} again=${loaded.again} />
    ${!loaded.value && !loaded.error && html`<p class="empty" aria-live="polite">Checking; a command is confined to see what holds…</p>`}
    <ul class="checks">${loaded.value?.checks.map((check, index) => html`<li key=${index} class=${check.state} style=${{ paddingLeft: check.name.startsWith(" ") ? "28px" : undefined }}>
      <span class="mark" role="img" aria-label=${mark[check.state]?.[1]}>${mark[check.state]?.[0]}</span><strong>${check.name.trim()}</strong> <span><${Words} text=${check.found} /></span>
      ${check.remedy && html`<div class="remedy"><${Words} text=${check.remedy} /></div>`}</li>`)}</ul>`;
}

// Quarantined changes: what commands changed and was not written to the workspace, and why.
import { html } from "./core.js";
import { get, post } from "./api.js";
import { ticks } from "./live.js";
import { Confirmed, Empty, Failure, Heading, Loading, note, Output, useLoaded, Words } from "./parts.js";
import { shortId } from "./format.js";
import { to } from "./router.js";

export function QuarantineView() {
  const loaded = useLoaded(() => get("/v1/quarantine"), [ticks.value.runs, ticks.value.changes]);
  const release = (it, replace) => async () => {
    const reply = await post("/v1/quarantine/release", { call: it.call, path: it.path, replace });
    note(reply.ok ? `${it.path} is in the workspace now; undo takes it back.` : `${reply.error.message} ${reply.error.hint ?? ""}`, reply.ok ? "info" : "error");
    loaded.again();
  };
  const list = loaded.value?.quarantined ?? [];
  return html`<${Heading} title="Quarantine" note="Changes of commands that were not written to the workspace" />
    <${Failure} error=${loaded.error} again=${loaded.again} />
    ${!loaded.value && !loaded.error && html`<${Loading} />`}
    ${loaded.value && list.length === 0 && html`<${Empty} icon="quarantine">Nothing is quarantined.<//>`}
    ${list.map(
      (it) => html`<article class="card quarantined" key=${`${it.call} ${it.path}`}>
        <header><h2><span class="path">${it.path}</span><a class="facts" href=${to(["search"], { q: it.call })}>by ${shortId(it.call)}</a></h2>
          <span class="toolbar"><${Confirmed} label="Release" question="Write it to the workspace?" act=${release(it, false)} /> <${Confirmed} label="Replace" question="Replace the file that is there?" act=${release(it, true)} kind="danger" /></span>
        </header>
        <p class="reason"><${Words} text=${it.reason} /></p>
        ${it.content === null ? html`<p class="muted">${it.mode === null ? "The command removed it." : "There is no content to show."}</p>` : html`<${Output} text=${it.content} label=${`Content of ${it.path}`} isFollowed=${false} kind="file-text" />`}
      </article>`,
    )}`;
}

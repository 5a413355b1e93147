// Search over all runs and calls: tasks, sessions, tools, paths, commands and ids.
import { html, useEffect, useState } from "./core.js";
import { get, withQuery } from "./api.js";
import { CallLink, Empty, Failure, Heading, Status, useLoaded, useNow, When } from "./parts.js";
import { counted } from "./format.js";
import { route, setQuery } from "./router.js";
import { RunRowLine } from "./view_runs.js";

export function SearchView() {
  const [text, setText] = useState(route.value.query.q ?? "");
  const now = useNow(10_000);
  const asked = (route.value.query.q ?? "").trim();
  useEffect(() => {
    const timer = setTimeout(() => text !== (route.value.query.q ?? "") && setQuery({ q: text }), 220);
    return () => clearTimeout(timer);
  }, [text]);
  const loaded = useLoaded(async () => (asked ? get(withQuery("/v1/search", { q: asked, limit: 100 })) : null), [asked]);
  const found = loaded.value;
  return html`<${Heading} title="Search" />
    <p><input type="search" id="search-box" class="big" placeholder="A path, a command, a tool, a task, an id" aria-label="Search everything" value=${text} onInput=${(event) => setText(event.target.value)} ref=${(it) => it && !it.dataset.seen && ((it.dataset.seen = "1"), it.focus())} /></p>
    <${Failure} error=${loaded.error} again=${loaded.again} />
    ${!asked && html`<${Empty} icon="search">Type what you look for. Everything on record in this workspace is searched.<//>`}
    ${found && html`<section aria-live="polite">
      ${found.runs.length > 0 && html`<h2 class="section">${counted(found.runs.length, "run")}</h2><div class="table">${found.runs.map((run) => html`<${RunRowLine} key=${run.id} run=${run} now=${now} />`)}</div>`}
      ${found.calls.length > 0 && html`<h2 class="section">${counted(found.calls.length, "call")}</h2><ul class="rules">${found.calls.map((it) => html`<li key=${it.run + it.call}><${Status} is=${it.ok === null ? (it.at_work ? "running" : "lost") : it.ok ? "ok" : "failed"} /> <span class="what"><${CallLink} run=${it.run} call=${it.call}><span class="tool">${it.tool}</span><//> <span class="call-text">${it.text}</span> ${it.code && html`<span class="bad">${it.code}</span>`} ${it.files_changed.length > 0 && html`<span class="meta">changed ${it.files_changed.join(" ")}</span>`}</span> <span class="layer"><${When} at=${it.time} /></span></li>`)}</ul>`}
      ${found.runs.length + found.calls.length === 0 && html`<${Empty} icon="search">Nothing on record contains “${asked}”.<//>`}
    </section>`}`;
}

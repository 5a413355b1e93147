// All runs, newest first, with search; older ones are loaded on demand.
import { html, useEffect, useState } from "./core.js";
import { get, withQuery } from "./api.js";
import { ticks, generation } from "./live.js";
import { Ago, Empty, Failure, Heading, Loading, Status, noteError, useNow } from "./parts.js";
import { counted, duration, grouped, shortId } from "./format.js";
import { route, setQuery, to } from "./router.js";

const PAGE = 60;

function stateOf(run) {
  if (!run.ended) return run.at_work ? "running" : "lost";
  if (run.outcome && run.outcome.finish !== "answered") return "failed";
  return "ok";
}

export function RunRowLine({ run, now }) {
  const until = run.ended ? Date.parse(run.ended) : run.at_work ? now : null;
  const took = run.started && until ? until - Date.parse(run.started) : null;
  const tokens = Object.values(run.usage).reduce((sum, used) => sum + used.input + used.output, 0);
  return html`<a class="run-row" href=${to(["run", run.id])}>
    <${Status} is=${stateOf(run)} />
    <span class="run-task">${run.task ?? html`${run.session ?? run.front_end ?? "run"}${run.session && run.front_end !== run.session && html`<span class="badge">${run.front_end}</span>`}`}</span>
    <span class="run-facts">
      ${run.failed > 0 && html`<span class="bad">${grouped(run.failed)} failed</span>`}
      ${run.cost && html`<span class="cost">${run.cost}</span>`}
      ${!run.cost && tokens > 0 && html`<span>${grouped(tokens)} tokens</span>`}
      ${run.outcome && run.outcome.finish !== "answered" && html`<span class="bad">${run.outcome.finish.replaceAll("_", " ")}</span>`}
      ${!run.ended && !run.at_work && html`<span class="muted">cut off</span>`}
      <span class="calls">${counted(run.calls, "call")}</span>
      <span class="took">${took !== null ? duration(took) : ""}</span>
      <span class="muted when"><${Ago} at=${run.started} now=${now} /></span>
      <code class="muted id">${shortId(run.id)}</code>
    </span>
  </a>`;
}

export function RunsView() {
  const text = route.value.query.q ?? "";
  const [pages, setPages] = useState(null);
  const [error, setError] = useState(null);
  const [isWhole, setWhole] = useState(false);
  const now = useNow(5000);
  const load = async () => {
    try {
      const { runs } = await get(withQuery("/v1/runs", { limit: PAGE, q: text }));
      setPages((before) => {
        // The first page is new; what was loaded beyond it stays.
        const known = new Set(runs.map((run) => run.id));
        const oldest = runs.at(-1)?.started;
        return [...runs, ...(before ?? []).filter((run) => !known.has(run.id) && run.started < oldest)];
      });
      if (runs.length < PAGE) setWhole(true);
      setError(null);
    } catch (problem) {
      setError(problem);
    }
  };
  useEffect(() => {
    setPages(null);
    setWhole(false);
  }, [text]);
  useEffect(() => {
    const timer = setTimeout(load, pages === null ? 120 : 0);
    return () => clearTimeout(timer);
  }, [text, ticks.value.runs, generation.value]);
  const more = async () => {
    try {
      const { runs } = await get(withQuery("/v1/runs", { limit: PAGE, q: text, before: pages.at(-1).started }));
      setPages([...pages, ...runs]);
      if (runs.length < PAGE) setWhole(true);
    } catch (problem) {
      noteError(problem);
    }
  };
  return html`<${Heading} title="Runs"><input type="search" class="filter" placeholder="Task, session or id" aria-label="Search runs" value=${text} onInput=${(event) => setQuery({ q: event.target.value })} /><//>
    <${Failure} error=${error} again=${load} />
    ${pages === null && !error && html`<${Loading} />`}
    <div class="table">${pages?.map((run) => html`<${RunRowLine} key=${run.id} run=${run} now=${now} />`)}</div>
    ${pages?.length === 0 && html`<${Empty} icon="runs">${text ? "No run contains that." : html`No run yet. <code>toolgate demo</code> shows one.`}<//>`}
    ${pages?.length > 0 && !isWhole && html`<p class="toolbar more-runs"><button type="button" onClick=${more}>Older runs</button></p>`}`;
}

// A run: its rows as a tree or as a timeline of calls, in a window of which the server has the rest; beside it the call
// that is looked at.
import { html, useEffect, useMemo, useState } from "./core.js";
import { get, post, segment, withQuery } from "./api.js";
import { listen } from "./live.js";
import { Confirmed, Decision, Failure, Heading, note, Status, useLoaded } from "./parts.js";
import { counted, duration, grouped, shortId, time } from "./format.js";
import { go, route, setQuery, to } from "./router.js";
import { Windowed } from "./windowed.js";
import { CallDetail } from "./view_call.js";

const FILTERS = ["failed", "asked", "denied", "changed", "running"];

function Bar({ row, from, to: until }) {
  if (!row.started || !from || !until) return null;
  const [start, end] = [new Date(from).getTime(), new Date(until).getTime()];
  const whole = Math.max(1, end - start);
  const began = new Date(row.started).getTime() - start;
  const took = row.duration_ms ?? (row.status === "running" || row.status === "waiting" ? end - start - began : 0);
  const left = Math.min(99.5, (began / whole) * 100);
  const width = Math.max(0.5, Math.min(100 - left, (took / whole) * 100));
  return html`<span class="bar-box" aria-hidden="true"><span class="bar ${row.status}" style=${{ left: `${left}%`, width: `${width}%` }}></span></span>`;
}

/** What the run's models have used: money where prices are known, and tokens. */
function Spent({ facts }) {
  const tokens = facts ? facts.tokens.input + facts.tokens.output : 0;
  if (!tokens) return null;
  return html` · ${facts.cost && html`<span class="cost">${facts.cost}</span> · `}<span title=${`${grouped(facts.tokens.input)} in, ${grouped(facts.tokens.output)} out`}>${counted(tokens, "token")}</span>`;
}

function Row({ row, span, closed, toggle }) {
  const isOpen = !closed.includes(row.id);
  return html`<span role="gridcell" class="row-main" style=${{ paddingLeft: `${row.depth * 16}px` }}>
      ${row.children > 0
        ? html`<button type="button" class="twist" tabindex="-1" aria-label=${isOpen ? "Close" : "Open"} onClick=${(event) => { event.stopPropagation(); toggle(row.id); }}>${isOpen ? "▾" : "▸"}</button>`
        : html`<span class="twist"></span>`}
      <${Status} is=${row.status} />
      <span class="row-name ${row.kind}">${row.name || "…"}</span>
      <span class="row-text">${row.text}</span>
    </span>
    <span role="gridcell" class="row-facts">
      ${row.decision && row.decision !== "allow" && html`<${Decision} decision=${row.decision} />`}
      ${row.code && html`<span class="bad">${row.code}</span>`}
      ${row.changed > 0 && html`<span class="changed">${counted(row.changed, "file")}</span>`}
      <span class="took">${duration(row.duration_ms)}</span>
    </span>
    <span role="gridcell" class="row-bar"><${Bar} row=${row} from=${span.from} to=${span.to} /></span>`;
}

export function RunView({ run }) {
  const { parts, query } = route.value;
  const call = parts[2] === "call" ? parts[3] : undefined;
  const [version, setVersion] = useState(0);
  const [selected, setSelected] = useState(undefined);
  const [closed, setClosed] = useState([]);
  const [facts, setFacts] = useState(null);
  const [text, setText] = useState(query.q ?? "");
  const { filter, mode } = query;
  const isFlat = mode === "timeline";
  const head = useLoaded(() => get(withQuery("/v1/runs", { q: run, limit: 1 })), [run, facts?.ended]);
  const summary = head.value?.runs?.[0];

  useEffect(() => {
    let timer = 0;
    const stop = listen((items) => {
      if (timer || !items.some((item) => item.run === run && item.kind !== "process.output")) return;
      timer = setTimeout(() => {
        timer = 0;
        setVersion((count) => count + 1);
      }, 400);
    });
    return () => {
      stop();
      clearTimeout(timer);
    };
  }, [run]);

  useEffect(() => {
    const timer = setTimeout(() => (query.q ?? "") !== text && setQuery({ q: text }), 200);
    return () => clearTimeout(timer);
  }, [text]);

  const list = useMemo(
    () => (offset, limit) => get(withQuery(`/v1/runs/${segment(run)}/outline`, { offset, limit, filter, q: query.q, closed: closed.join(","), flat: isFlat })),
    [run, filter, query.q, closed, isFlat],
  );
  const toggle = (id) => {
    setClosed((before) => (before.includes(id) ? before.filter((known) => known !== id) : [...before, id]));
    setVersion((count) => count + 1);
  };
  const open = (row, key) => {
    if (row.kind === "call" && key !== "ArrowLeft" && key !== " ") go(["run", run, "call", row.id], { filter, q: query.q, mode });
    else if (row.children > 0 && ((key === "ArrowLeft") === !closed.includes(row.id) || key === "Enter" || key === " " || key === "click")) toggle(row.id);
  };
  const undo = async () => {
    const reply = await post("/v1/undo", { run, approve: true });
    note(reply.ok ? "The run's changes are undone." : reply.error.message, reply.ok ? "info" : "error");
  };
  const counts = facts?.counts;
  return html`<${Heading} title=${summary?.task ?? `Run of ${summary?.session ?? "…"}`} note=${html`<code>${shortId(run)}</code>${counts ? ` · ${counted(counts.calls, "call")}` : ""}<${Spent} facts=${facts} />${facts?.ended === false ? (facts.at_work ? " · at work" : " · cut off: its program died") : ""}`}>
      ${counts?.changed > 0 && html`<a class="button small" href=${to(["changes"], { run })}>Changes</a>`}
      ${counts?.changed > 0 && html`<${Confirmed} label="Undo the run" question="Undo every change of this run?" act=${undo} kind="danger" />`}
    <//>
    <div class="run-bar">
      <div class="tabs" role="group" aria-label="Order">
        <button type="button" aria-pressed=${!isFlat ? "true" : "false"} onClick=${() => setQuery({ mode: "" })}>Tree</button>
        <button type="button" aria-pressed=${isFlat ? "true" : "false"} onClick=${() => setQuery({ mode: "timeline" })}>Timeline</button>
      </div>
      <div class="chips" role="group" aria-label="Show only">
        ${FILTERS.map((name) => html`<button type="button" key=${name} class="chip" aria-pressed=${filter === name ? "true" : "false"} disabled=${!counts?.[name] && filter !== name} onClick=${() => setQuery({ filter: filter === name ? "" : name })}>${name} <span class="count">${grouped(counts?.[name] ?? 0)}</span></button>`)}
      </div>
      <input type="search" class="filter" placeholder="Search in this run" aria-label="Search in this run" value=${text} onInput=${(event) => setText(event.target.value)} />
    </div>
    <${Failure} error=${head.error} />
    ${isFlat && facts?.from && html`<p class="axis" aria-hidden="true"><span>${time(facts.from)}</span><span>${duration(new Date(facts.to).getTime() - new Date(facts.from).getTime())} in all</span><span>${time(facts.to)}</span></p>`}
    <div class="split ${isFlat ? "timeline" : ""} ${call ? "has-detail" : ""}">
      <${Windowed}
        load=${list}
        version=${version}
        reset=${`${run} ${filter} ${query.q} ${isFlat}`}
        rowHeight=${30}
        label=${isFlat ? "Calls in order" : "Agents, turns and calls"}
        selected=${selected}
        isShown=${(row) => row.id === call}
        onSelect=${setSelected}
        onOpen=${open}
        onLoaded=${setFacts}
        row=${(row) => html`<${Row} row=${row} span=${facts ?? {}} closed=${closed} toggle=${toggle} />`}
      />
      ${call && html`<aside class="detail" key=${call} aria-label="Call"><${CallDetail} run=${run} call=${call} close=${() => go(["run", run], { filter, q: query.q, mode })} /></aside>`}
    </div>`;
}

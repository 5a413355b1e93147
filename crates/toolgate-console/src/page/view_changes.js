// What calls changed, newest first, and undo by call, turn and run.
import { html } from "./core.js";
import { get, post, withQuery } from "./api.js";
import { ticks } from "./live.js";
import { CallLink, Confirmed, Empty, Failure, Heading, Loading, note, RunLink, useLoaded, When } from "./parts.js";
import { counted, shortId } from "./format.js";
import { Changes } from "./diff.js";
import { route, setQuery } from "./router.js";

const MOST = 100;

export function ChangesView() {
  const { run } = route.value.query;
  const runs = useLoaded(() => get("/v1/runs?limit=40"), [ticks.value.runs]);
  const named = runs.value?.runs.filter((it) => it.calls > 0) ?? [];
  const chosen = run ?? named[0]?.id;
  const loaded = useLoaded(async () => (chosen ? get(withQuery("/v1/changes", { run: chosen, diff: true })) : { changes: [] }), [chosen, ticks.value.changes]);
  const undo = (what, words) => async () => {
    const reply = await post("/v1/undo", { ...what, approve: true });
    note(reply.ok ? `${words} undone.` : reply.error.message, reply.ok ? "info" : "error");
    loaded.again();
  };
  const list = [...(loaded.value?.changes ?? [])].reverse().slice(0, MOST);
  const turns = [...new Map(list.filter((entry) => entry.turn !== null && entry.turn !== undefined).map((entry) => [`${entry.agent}/${entry.turn}`, entry])).values()];
  return html`<${Heading} title="Changes">
      <label class="inline">Run <select value=${chosen} onChange=${(event) => setQuery({ run: event.target.value })}>${named.map((it) => html`<option key=${it.id} value=${it.id} selected=${it.id === chosen}>${(it.task ?? it.session ?? "").slice(0, 60)} (${shortId(it.id)})</option>`)}${run && !named.some((it) => it.id === run) && html`<option value=${run} selected>${shortId(run)}</option>`}</select></label>
      ${list.length > 0 && html`<${Confirmed} label="Undo the run" question="Undo every change of this run?" act=${undo({ run: chosen }, "The run is")} kind="danger" />`}
    <//>
    <${Failure} error=${loaded.error} again=${loaded.again} />
    ${!loaded.value && !loaded.error && html`<${Loading} />`}
    ${loaded.value && list.length === 0 && html`<${Empty} icon="changes">${chosen ? html`This run changed no files. <${RunLink} run=${chosen}>Open it<//>` : "Nothing was changed yet."}<//>`}
    ${turns.length > 1 && html`<p class="turn-undo">${turns.map((entry) => html`<${Confirmed} key=${`${entry.agent}/${entry.turn}`} label=${`Undo turn ${entry.turn}`} question=${`Undo turn ${entry.turn}?`} act=${undo({ run: chosen, turn: entry.turn, ...(entry.agent ? { agent: entry.agent } : {}) }, "The turn is")} />`)}</p>`}
    ${list.map(
      (entry, index) => html`<article class="card change" key=${`${entry.call}${index}`}>
        <header>
          <h2><${CallLink} run=${entry.run} call=${entry.call}><span class="tool">${entry.tool ?? shortId(entry.call)}</span><//><span class="call-text">${entry.text}</span><span class="meta facts">${counted(entry.count, "path")} · <${When} at=${entry.time} />${entry.turn ? ` · turn ${entry.turn}` : ""}</span></h2>
          <${Confirmed} label="Undo" question="Undo this call?" act=${undo({ call: entry.call }, "The call is")} kind="danger" />
        </header>
        <${Changes} changes=${entry.changes} open=${index < 3} />
      </article>`,
    )}`;
}

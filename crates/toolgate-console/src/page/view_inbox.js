// The inbox: tasks for workers (`toolgate work`), and their answers.
import { html, useState } from "./core.js";
import { get, post } from "./api.js";
import { ticks } from "./live.js";
import { Ago, Empty, Failure, Heading, Loading, note, noteError, RunLink, useLoaded, useNow } from "./parts.js";
import { shortId } from "./format.js";

export function InboxView() {
  const now = useNow(5000);
  const [task, setTask] = useState("");
  const loaded = useLoaded(() => get("/v1/inbox?newest=true&limit=200"), [ticks.value.inbox]);
  const add = async (event) => {
    event.preventDefault();
    try {
      await post("/v1/inbox", { task });
      setTask("");
      note("Added. A worker takes it as soon as one is free.");
      loaded.again();
    } catch (error) {
      noteError(error);
    }
  };
  const list = loaded.value?.tasks ?? [];
  return html`<${Heading} title="Inbox" note=${html`Tasks for workers; <code>toolgate work</code> starts one`} />
    <form class="form" onSubmit=${add}><label for="task">A new task</label><textarea id="task" rows="3" value=${task} onInput=${(event) => setTask(event.target.value)}></textarea><button type="submit" class="primary" disabled=${!task.trim()}>Add</button></form>
    <${Failure} error=${loaded.error} again=${loaded.again} />
    ${!loaded.value && !loaded.error && html`<${Loading} />`}
    ${loaded.value && list.length === 0 && html`<${Empty} icon="inbox">No task yet.<//>`}
    ${list.map((it) => html`<article class="card" key=${it.id}><header><h2>${it.task}</h2><span class="badge state-${it.state}">${String(it.state).replaceAll("_", " ")}</span></header>
      <p class="meta"><${Ago} at=${it.created} now=${now} />${it.outcome ? ` · ${it.outcome.replaceAll("_", " ")}` : ""}${it.runs.map((run) => html` · <${RunLink} key=${run} run=${run}>${shortId(run)}<//>`)}</p>
      ${it.answer && html`<p class="pre">${it.answer}</p>`}</article>`)}`;
}

// The tools that calls may use, with their arguments and permissions.
import { html, useState } from "./core.js";
import { get } from "./api.js";
import { Empty, Failure, Heading, Loading, Risk, useLoaded, Words } from "./parts.js";

export function ToolsView() {
  const [text, setText] = useState("");
  const loaded = useLoaded(() => get("/v1/tools"), []);
  const wanted = text.toLowerCase();
  const list = (loaded.value?.tools ?? []).filter((tool) => `${tool.name} ${tool.description}`.toLowerCase().includes(wanted));
  return html`<${Heading} title="Tools" note=${loaded.value ? String(loaded.value.tools.length) : ""}><input type="search" class="filter" placeholder="Search tools" aria-label="Search tools" value=${text} onInput=${(event) => setText(event.target.value)} /><//>
    <${Failure} error=${loaded.error} again=${loaded.again} />
    ${!loaded.value && !loaded.error && html`<${Loading} />`}
    ${loaded.value && list.length === 0 && html`<${Empty} icon="tools">No tool contains that.<//>`}
    <div class="table">${list.map((tool) => {
      const schema = tool.args_schema ?? tool.parameters ?? tool.input_schema ?? tool.schema ?? {};
      const needed = new Set(schema.required ?? []);
      return html`<details class="tool-row" key=${tool.name}><summary><span class="tool">${tool.name}</span><span><${Risk} risk=${tool.risk} /></span><span class="muted"><${Words} text=${(tool.description ?? "").split("\n")[0]} /></span></summary>
        <div class="tool-body"><p class="pre"><${Words} text=${tool.description} /></p>
        <dl class="fields">${Object.entries(schema.properties ?? {}).map(([name, field]) => html`<div class="field" key=${name}><dt>${name}${needed.has(name) ? " *" : ""}</dt><dd><${Words} text=${field.description ?? [field.type ?? []].flat().join(" or ")} /></dd></div>`)}</dl>
        ${tool.required_permissions?.length > 0 && html`<p class="muted">needs ${tool.required_permissions.join(", ")}</p>`}</div>
      </details>`;
    })}</div>`;
}

// A call: what was asked for, why it was decided so, what it did, what held while it ran, and how to undo it.
import { html, useEffect, useRef, useState } from "./core.js";
import { get, post, segment, withQuery } from "./api.js";
import { answered, approvals, listen, running } from "./live.js";
import { Confirmed, Decision, Failure, Json, Loading, note, Output, Risk, RunLink, Status, useLoaded, When, Words } from "./parts.js";
import { bytes, duration, scopeWords, shortId } from "./format.js";
import { Icon } from "./icons.js";
import { Changes } from "./diff.js";
import { Why } from "./why.js";
import { ApprovalCard } from "./view_approvals.js";
import { useKeys } from "./keys.js";
import { to } from "./router.js";

function statusOf(detail) {
  if (!detail.reply && !detail.at_work) return "lost";
  if (!detail.reply) return detail.asked && !detail.answered ? "waiting" : "running";
  if (detail.reply.ok) return "ok";
  return detail.answered?.answer === "denied" || detail.verdict?.decision === "deny" ? "denied" : "failed";
}

/** The text of a reply: what a command wrote, a diff, or the fields as they are. */
function Payload({ payload }) {
  if (payload === null || payload === undefined) return null;
  if (typeof payload !== "object") return html`<${Output} text=${String(payload)} />`;
  const { stdout, stderr, output, content, text, diff, ...rest } = payload;
  const texts = { stdout, stderr, output, content, text, diff };
  return html`${Object.entries(texts).map(([name, value]) => (typeof value === "string" && value ? html`<div key=${name}><h4>${name}</h4><${Output} text=${value} label=${name} /></div>` : null))}
    <${Json} value=${Object.fromEntries([...Object.entries(rest), ...Object.entries(texts).filter(([, value]) => value !== undefined && typeof value !== "string")])} />`;
}

function Enforced({ enforced }) {
  const entries = Object.entries(enforced ?? {});
  if (!entries.length) return null;
  const mark = { held: "✓", partly: "◐", not_held: "✕" };
  return html`<section><h3>What was enforced</h3><ul class="enforced">${entries.map(([name, level]) => html`<li key=${name} class=${level}><span aria-hidden="true">${mark[level]}</span> ${name.replaceAll("_", " ")} <span class="muted">${level.replaceAll("_", " ")}</span></li>`)}</ul></section>`;
}

/** How much of an artifact is shown at a time, in bytes. */
const ARTIFACT_PART = 65_536;

function Artifact({ run, artifact }) {
  const [shown, setShown] = useState({ text: "", bytes: 0 });
  const decoder = useRef(new TextDecoder());
  const address = withQuery(`/v1/artifacts/${segment(artifact.id)}`, { run });
  const isText = /^text\/|json/.test(artifact.mime);
  const more = async () => {
    const response = await fetch(address, { headers: { Range: `bytes=${shown.bytes}-${shown.bytes + ARTIFACT_PART - 1}` } }).catch(() => null);
    if (!response?.ok) return note("The artifact can't be read.", "error");
    const part = await response.arrayBuffer();
    return setShown({ text: shown.text + decoder.current.decode(part, { stream: true }), bytes: shown.bytes + part.byteLength });
  };
  const isWhole = shown.bytes >= artifact.bytes;
  return html`<li><a href=${address} download=${artifact.id}>${artifact.field ?? artifact.id}</a> <span class="muted">${artifact.mime} · ${bytes(artifact.bytes)}</span> ${isText && !isWhole && html`<button type="button" class="small" onClick=${more}>${shown.bytes ? "Show more" : "Show"}</button>`}
    ${shown.text && html`<${Output} text=${shown.text} label=${`Artifact ${artifact.field ?? artifact.id}`} isFollowed=${false} />`}</li>`;
}

function Refs({ run, refs }) {
  if (!refs?.length) return null;
  return html`<section><h3>Artifacts</h3><ul class="plain">${refs.map((it) => html`<${Artifact} key=${it.id} run=${run} artifact=${it} />`)}</ul></section>`;
}

export function CallDetail({ run, call, close }) {
  const [version, setVersion] = useState(0);
  const loaded = useLoaded(() => get(`/v1/runs/${segment(run)}/calls/${segment(call)}`), [run, call, version]);
  useEffect(() => listen((items) => items.some((item) => item.call === call && item.kind !== "process.output") && setVersion((count) => count + 1)), [call]);
  useKeys("Call", [{ key: "Escape", does: "close the call", run: close }]);
  const detail = loaded.value;
  if (!detail) return html`<${Failure} error=${loaded.error} again=${loaded.again} />${!loaded.error && html`<${Loading} />`}`;
  const ask = approvals.value.find((it) => it.request.tool_call_id === call);
  const live = running.value[call];
  const end = detail.answered ?? answered.value[call];
  const undo = async () => {
    const reply = await post("/v1/undo", { call, approve: true });
    note(reply.ok ? "Undone." : reply.error.message, reply.ok ? "info" : "error");
    setVersion((count) => count + 1);
  };
  const cancel = async () => {
    const response = await fetch(`/v1/calls/${segment(call)}`, { method: "DELETE", headers: { "X-Toolgate-Console": "1" } });
    note(response.ok ? "Cancelled." : "Only calls of this server's own session can be cancelled here.", response.ok ? "info" : "error");
  };
  const { reply } = detail;
  return html`<div class="call">
    <header class="call-head">
      <h2 tabindex="-1"><${Status} is=${statusOf(detail)} /><span class="tool">${detail.tool}</span><${Decision} verdict=${detail.verdict} /><${Risk} risk=${detail.risk} /></h2>
      <button type="button" class="bare" onClick=${close} aria-label="Close"><${Icon} name="close" /></button>
    </header>
    <p class="meta"><${When} at=${detail.started} />${reply && ` · ${duration(reply.duration_ms)}`}${detail.turn !== undefined && detail.turn !== null ? ` · turn ${detail.turn}` : ""} · <${RunLink} run=${run}>${shortId(run)}<//> · <code>${shortId(call)}</code></p>
    ${ask && html`<${ApprovalCard} ask=${ask} isCurrent onFocus=${() => {}} />`}
    ${end?.by && html`<p class="answer-line">${(end.answer ?? end.kind).replace("approval_", "").replaceAll("_", " ")} by <strong>${end.by}</strong> ${end.scope && html`<span class="badge">${scopeWords[end.scope]}</span>`} ${(end.reason ?? end.text) && html`<span>“${end.reason ?? end.text}”</span>`}</p>`}
    ${detail.justification && html`<p class="said"><span class="muted">It says:</span> ${detail.justification}</p>`}
    ${reply?.error && html`<div class="failure"><strong>${reply.error.code}</strong> <${Words} text=${reply.error.message} /> ${reply.error.hint && html`<span><${Words} text=${reply.error.hint} /></span>`}</div>`}
    ${detail.changes.length > 0 && html`<section><h3>Changes <${Confirmed} label="Undo this call" question="Undo what this call changed?" act=${undo} kind="danger" /></h3><${Changes} changes=${detail.changes} /></section>`}
    ${detail.quarantined?.length > 0 && html`<section><h3>Quarantined</h3><ul class="plain">${detail.quarantined.map((it) => html`<li key=${it.path}><span class="path">${it.path}</span> <span class="muted">${it.reason}</span></li>`)}</ul><p><a href=${to(["quarantine"])}>Look at it</a></p></section>`}
    ${live && html`<section><h3>Output as it comes ${!reply && html`<${Confirmed} label="Cancel" question="Cancel the call?" act=${cancel} kind="danger" />`}</h3><${Output} text=${live.output} /></section>`}
    <section><h3>Arguments</h3><${Json} value=${detail.args} /></section>
    <section><h3>Why?</h3><${Why} verdict=${detail.verdict} effects=${detail.effects} />${detail.widened && html`<h4>Then, with more rights</h4><${Why} verdict=${detail.widened.verdict} effects=${detail.widened.effects} />`}</section>
    ${reply?.payload !== undefined && reply?.payload !== null && html`<section><h3>Reply ${reply.redacted && html`<span class="badge">secrets replaced</span>`} ${reply.truncated && html`<span class="badge">shortened</span>`}</h3><${Payload} payload=${detail.changes.length && typeof reply.payload === "object" ? { ...reply.payload, diff: undefined } : reply.payload} /></section>`}
    ${detail.denials?.length > 0 && html`<section><h3>Denied by the sandbox</h3><ul class="plain">${detail.denials.map((denial, index) => html`<li key=${index}>${denial.message ?? JSON.stringify(denial)}</li>`)}</ul></section>`}
    <${Refs} run=${run} refs=${reply?.artifacts?.refs} />
    <${Enforced} enforced=${reply?.enforced} />
    ${detail.messages.length > 0 && html`<section><h3>Messages</h3><ul class="plain">${detail.messages.map((message, index) => html`<li key=${index}><span class="badge">${message.level}</span> ${message.title && html`<strong>${message.title}</strong>`} ${message.content}</li>`)}</ul></section>`}
    <section><h3>Events</h3><ol class="events">${detail.events.map((event) => html`<li key=${event.seq}><${When} at=${event.time} /> <code>${event.kind}</code> <span class="muted">${event.by ?? event.code ?? ""}</span></li>`)}</ol></section>
  </div>`;
}

// Small parts that every view is made of. Text is always a text node.
import { html, signal, useEffect, useRef, useState, useCallback } from "./core.js";
import { Icon } from "./icons.js";
import { generation } from "./live.js";
import { ago, time } from "./format.js";
import { to } from "./router.js";

/** Notes at the bottom of the page: {id, text, kind}. */
export const notes = signal([]);
let noteId = 0;

export function note(text, kind = "info") {
  const id = ++noteId;
  notes.value = [...notes.value, { id, text, kind }].slice(-4);
  setTimeout(() => (notes.value = notes.value.filter((known) => known.id !== id)), kind === "error" ? 9000 : 4500);
}

export function noteError(error) {
  note(error.hint ? `${error.message} ${error.hint}` : error.message, "error");
}

/** Loads something now, and again when one of the values changes or the connection was lost in between. */
export function useLoaded(load, values) {
  const [state, setState] = useState({ value: undefined, error: null });
  const latest = useRef(0);
  const again = useCallback(async () => {
    const mine = ++latest.current;
    try {
      const value = await load();
      if (mine === latest.current) setState({ value, error: null });
    } catch (error) {
      if (mine === latest.current) setState((before) => ({ value: before.value, error }));
    }
  }, values);
  useEffect(() => {
    again();
  }, [...values, generation.value]);
  return { ...state, again };
}

/** The time now, every second, for durations that grow. */
export function useNow(ms = 1000) {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), ms);
    return () => clearInterval(timer);
  }, [ms]);
  return now;
}

const STATUS = {
  running: ["●", "running"],
  waiting: ["◆", "waiting for you"],
  ok: ["✓", "done"],
  failed: ["✕", "failed"],
  denied: ["⊘", "refused"],
  lost: ["◌", "cut off: its program died"],
};

export function Status({ is }) {
  const [mark, words] = STATUS[is] ?? ["·", is];
  return html`<span class="status ${is}" role="img" aria-label=${words} title=${words}>${mark}</span>`;
}

export function Decision({ verdict, decision }) {
  const word = verdict ? (verdict.decision === "allow" && verdict.confined ? "allow, confined" : verdict.decision) : decision;
  const kind = (verdict?.decision ?? decision ?? "").split(" ")[0];
  return html`<span class="badge ${kind}">${word}</span>`;
}

export const Risk = ({ risk }) => (risk ? html`<span class="badge risk-${risk}">${risk} risk</span>` : null);

export const When = ({ at }) => (at ? html`<time datetime=${at} title=${new Date(at).toLocaleString()}>${time(at)}</time>` : null);
export const Ago = ({ at, now }) => (at ? html`<time datetime=${at} title=${new Date(at).toLocaleString()}>${ago(at, now)}</time>` : null);

/** Words in which code is between backticks. */
export const Words = ({ text }) => String(text ?? "").split("`").map((part, index, parts) => (index % 2 && index < parts.length - 1 ? html`<code key=${index}>${part}</code>` : index % 2 ? `\`${part}` : part));

/** What is said where a list has nothing: in the middle with its icon where the view has nothing else. */
export const Empty = ({ icon = undefined, children }) => html`<div class=${icon ? "empty wide" : "empty"}>${icon && html`<${Icon} name=${icon} />`}<div>${children}</div></div>`;

export function Failure({ error, again }) {
  if (!error) return null;
  return html`<div class="failure" role="alert">
    <strong><${Words} text=${error.message} /></strong> <span><${Words} text=${error.hint} /></span>
    ${again && html`<button type="button" class="small" onClick=${again}>Try again</button>`}
  </div>`;
}

export const Loading = () => html`<p class="empty" aria-live="polite">Loading…</p>`;

export function Heading({ title, children, note: words }) {
  return html`<header class="view-head">
    <h1 tabindex="-1">${title}</h1>
    ${words && html`<span class="muted">${words}</span>`}
    <div class="view-actions">${children}</div>
  </header>`;
}

export const CallLink = ({ run, call, children }) => html`<a href=${to(["run", run, "call", call])}>${children}</a>`;
export const RunLink = ({ run, children }) => html`<a href=${to(["run", run])}>${children}</a>`;

/** A value as indented JSON, in which strings of several lines keep them. */
export function Json({ value }) {
  if (value === null || value === undefined) return html`<span class="muted">none</span>`;
  if (typeof value !== "object") return html`<pre class="text">${String(value)}</pre>`;
  const entries = Object.entries(value).filter(([, field]) => field !== undefined);
  if (!entries.length) return html`<span class="muted">none</span>`;
  return html`<dl class="fields">
    ${entries.map(
      ([name, field]) => html`<div class="field" key=${name}>
        <dt>${name}</dt>
        <dd>${typeof field === "string" ? html`<pre class="text">${field}</pre>` : html`<pre class="text">${JSON.stringify(field, null, 2)}</pre>`}</dd>
      </div>`,
    )}
  </dl>`;
}

/** A button that asks once more, in its own place, before it acts. */
export function Confirmed({ label, question, act, kind = "" }) {
  const [isAsked, setAsked] = useState(false);
  const [isBusy, setBusy] = useState(false);
  useEffect(() => {
    if (!isAsked) return undefined;
    const timer = setTimeout(() => setAsked(false), 6000);
    return () => clearTimeout(timer);
  }, [isAsked]);
  const go = async () => {
    setBusy(true);
    try {
      await act();
    } catch (error) {
      noteError(error);
    }
    setBusy(false);
    setAsked(false);
  };
  if (!isAsked) return html`<button type="button" class="small ${kind}" onClick=${() => setAsked(true)}>${label}</button>`;
  return html`<span class="confirm" role="group" aria-label=${question}>
    <span>${question}</span>
    <button type="button" class="small danger" disabled=${isBusy} onClick=${go}>Yes</button>
    <button type="button" class="small" onClick=${() => setAsked(false)}>No</button>
  </span>`;
}

/** Text of a command's output, that stays at its end while it grows unless somebody scrolled up. */
export function Output({ text, label = "Output", isFollowed = true, kind = "" }) {
  const box = useRef(null);
  const follows = useRef(isFollowed);
  useEffect(() => {
    if (box.current && follows.current) box.current.scrollTop = box.current.scrollHeight;
  }, [text]);
  const scrolled = () => {
    const it = box.current;
    follows.current = isFollowed && it.scrollTop + it.clientHeight >= it.scrollHeight - 24;
  };
  return html`<pre class="output ${kind}" ref=${box} onScroll=${scrolled} tabindex="0" role="region" aria-label=${label}>${text}</pre>`;
}

// Requests that wait for a person: approvals with exactly what each answer grants, and questions of agents. An approval
// acts only when its row hasn't moved for half a second, never by Enter alone, and names the hash of what was shown.
import { html, useEffect, useLayoutEffect, useRef, useState } from "./core.js";
import { post, segment } from "./api.js";
import { answered, approvals, listen, loadQueue, waiting } from "./live.js";
import { Diff, DiffCounts } from "./diff.js";
import { Ago, CallLink, Empty, Heading, Json, note, noteError, Risk, RunLink, useNow, Words } from "./parts.js";
import { scopeWords } from "./format.js";
import { useKeys } from "./keys.js";

const STILL_MS = 500;

const ANSWER_WORDS = { approval_granted: "approved", approval_denied: "denied", question_answered: "answered" };

/** The calls whose requests were answered on this page. */
const answeredHere = new Set();

// Whoever looks at a request that is answered elsewhere is told who did it, whatever view is open.
listen((items) => {
  for (const item of items) {
    if (!ANSWER_WORDS[item.kind] || answeredHere.delete(item.call)) continue;
    const { by, tool, what } = answered.value[item.call] ?? item;
    note([by, ANSWER_WORDS[item.kind], tool, what].filter(Boolean).join(" "));
  }
});

/** Since when an element is where it is. Any movement on the screen starts the time again. */
function useStillness(ref) {
  const place = useRef({ top: NaN, left: NaN, since: Infinity });
  const [isStill, setStill] = useState(false);
  useLayoutEffect(() => {
    let frame = 0;
    const watch = () => {
      const it = ref.current?.getBoundingClientRect();
      if (it) {
        const before = place.current;
        if (!(Math.abs(it.top - before.top) <= 0.5 && Math.abs(it.left - before.left) <= 0.5)) {
          place.current = { top: it.top, left: it.left, since: performance.now() };
          setStill(false);
        } else if (performance.now() - before.since >= STILL_MS) setStill(true);
      }
      frame = requestAnimationFrame(watch);
    };
    watch();
    return () => cancelAnimationFrame(frame);
  }, []);
  return /** @type {const} */ ([isStill, () => performance.now() - place.current.since >= STILL_MS]);
}

/** Whether all of an element can be seen. */
function isInView(element) {
  const [place, view] = [element?.getBoundingClientRect(), document.getElementById("main").getBoundingClientRect()];
  return Boolean(place) && place.top >= view.top - 1 && place.bottom <= view.bottom + 1;
}

function What({ request, diff, effects }) {
  const { command, content, replace, find, ...rest } = request.args ?? {};
  return html`
    ${command && html`<pre class="command-text">${command}</pre>`}
    ${diff && html`<${Diff} diff=${diff} label="What it would change" />`}
    <ul class="effects" aria-label="What it touches">${effects.map((effect, index) => html`<li key=${index}>${effect}</li>`)}</ul>
    <details><summary>All arguments</summary><${Json} value=${diff ? rest : request.args} /></details>
  `;
}

export function ApprovalCard({ ask, isCurrent, onFocus }) {
  const { request } = ask;
  const card = useRef(null);
  const [isStill, isStillNow] = useStillness(card);
  const [reason, setReason] = useState("");
  const [isDenying, setDenying] = useState(false);
  const [isBusy, setBusy] = useState(false);
  const now = useNow();
  const send = async (body) => {
    if (isBusy || (body.answer === "approve" && !isStillNow())) return;
    setBusy(true);
    answeredHere.add(request.tool_call_id);
    try {
      await post(`/v1/approvals/${segment(ask.id)}`, { ...body, hash: ask.hash });
    } catch (error) {
      answeredHere.delete(request.tool_call_id);
      if (error.status === 404 || error.code === "already_answered") {
        const end = answered.value[request.tool_call_id];
        note(end ? `${end.by} answered first.` : "It was answered elsewhere, or is withdrawn.");
      } else noteError(error);
    }
    setBusy(false);
    loadQueue();
  };
  const approve = (scope) => (event) => {
    // A key that is held down or an Enter that was meant for something else doesn't approve.
    if (event?.detail === 0 && event?.pointerType !== "mouse" && !event?.isTrusted) return;
    send({ answer: "approve", scope });
  };
  const deny = (answer) => send({ answer, ...(reason.trim() ? { reason: reason.trim() } : {}) });
  useEffect(() => {
    if (!isCurrent) return undefined;
    const act = (event) => {
      const { kind, number } = event.detail;
      if (kind === "approve") {
        const option = request.scopes[number - 1];
        if (option) send({ answer: "approve", scope: option.scope });
      } else if (kind === "deny") setDenying(true);
    };
    addEventListener("toolgate-answer", act);
    return () => removeEventListener("toolgate-answer", act);
  });
  useEffect(() => {
    if (isDenying) card.current?.querySelector("textarea")?.focus();
  }, [isDenying]);
  return html`<article class="card approval ${isCurrent ? "current" : ""}" ref=${card} data-ask=${ask.id} aria-labelledby=${`ask-${ask.id}`} onFocusIn=${onFocus} onMouseEnter=${onFocus}>
    <header>
      <h2 id=${`ask-${ask.id}`}><span class="tool">${request.tool}</span>${typeof request.args?.path === "string" && html`<span class="call-text">${request.args.path}</span>`}<${DiffCounts} diff=${ask.diff} /><${Risk} risk=${request.risk} /></h2>
      <span class="meta"><${CallLink} run=${ask.run} call=${request.tool_call_id}>call<//> in <${RunLink} run=${ask.run}>${ask.session}<//> · <${Ago} at=${ask.asked} now=${now} />${ask.expires && html` · until ${new Date(ask.expires).toLocaleTimeString()}`}</span>
    </header>
    <p class="reason"><${Words} text=${request.reason} /></p>
    ${request.justification && html`<p class="said"><span class="muted">It says:</span> ${request.justification}</p>`}
    <${What} request=${request} diff=${ask.diff} effects=${ask.effects} />
    <div class="answers" role="group" aria-label="Approve">
      ${request.scopes.map(
        (option, index) => html`<div class="scope" key=${option.scope}>
          <button type="button" class="approve" disabled=${!isStill || isBusy} onKeyDown=${(event) => event.key === "Enter" && event.preventDefault()} onClick=${approve(option.scope)} aria-describedby=${`grants-${ask.id}-${option.scope}`}>
            Approve: ${scopeWords[option.scope].toLowerCase()} <kbd>${index + 1}</kbd>
          </button>
          <span class="grants" id=${`grants-${ask.id}-${option.scope}`}><${Words} text=${option.grants} /></span>
        </div>`,
      )}
    </div>
    ${!isDenying && html`<div class="answers below"><div class="scope"><button type="button" class="deny" disabled=${isBusy} onClick=${() => setDenying(true)}>Deny… <kbd>d</kbd></button><span class="meta">with a reason, if you like: the model reads it</span></div></div>`}
    ${isDenying &&
    html`<form class="deny-form" onSubmit=${(event) => {
      event.preventDefault();
      deny("deny");
    }}>
      <label for=${`reason-${ask.id}`}>Why? The model is told (may stay empty).</label>
      <textarea id=${`reason-${ask.id}`} rows="2" value=${reason} onInput=${(event) => setReason(event.target.value)}></textarea>
      <div class="answers">
        <button type="submit" class="deny" disabled=${isBusy}>Deny</button>
        <button type="button" class="danger" disabled=${isBusy} onClick=${() => deny("abort")}>Deny and end the run</button>
        <button type="button" onClick=${() => setDenying(false)}>Back</button>
      </div>
    </form>`}
  </article>`;
}

export function QuestionCard({ ask }) {
  const [text, setText] = useState("");
  const [isBusy, setBusy] = useState(false);
  const { question } = ask;
  const send = async (words) => {
    setBusy(true);
    answeredHere.add(question.tool_call_id);
    try {
      await post(`/v1/questions/${segment(ask.id)}`, { answer: words });
      note("Answered.");
    } catch (error) {
      answeredHere.delete(question.tool_call_id);
      if (error.status === 404 || error.code === "already_answered") note("It was answered elsewhere, or is withdrawn.");
      else noteError(error);
    }
    setBusy(false);
    loadQueue();
  };
  return html`<article class="card question" data-ask=${ask.id} aria-labelledby=${`ask-${ask.id}`}>
    <header><h2 id=${`ask-${ask.id}`}>Question</h2><span class="meta"><${CallLink} run=${ask.run} call=${question.tool_call_id}>call<//> in <${RunLink} run=${ask.run}>${ask.session}<//></span></header>
    <p class="asked">${question.question}</p>
    ${question.choices?.length > 0 &&
    html`<ul class="choices">${question.choices.map((choice, index) => html`<li key=${index}><button type="button" disabled=${isBusy} onClick=${() => send(String(index + 1))}>${choice.label}</button> <span class="muted">${choice.description}</span></li>`)}</ul>`}
    ${(question.free_text || !question.choices?.length) &&
    html`<form onSubmit=${(event) => {
      event.preventDefault();
      if (text.trim()) send(text.trim());
    }}>
      <label for=${`answer-${ask.id}`}>Your answer</label>
      <textarea id=${`answer-${ask.id}`} rows="2" value=${text} onInput=${(event) => setText(event.target.value)}></textarea>
      <div class="answers"><button type="submit" disabled=${isBusy || !text.trim()}>Answer</button></div>
    </form>`}
  </article>`;
}

const cardOf = (id) => document.querySelector(`[data-ask="${CSS.escape(id ?? "")}"]`);

/** Everything that waits, with keys to walk through it and to answer. */
export function WaitingCards() {
  const [current, setCurrent] = useState(undefined);
  const list = approvals.value;
  // It is named by its id: another one that takes its place isn't the one that was read.
  const id = list.some((ask) => ask.id === current) ? current : list[0]?.id;
  useEffect(() => setCurrent(id), [id]);
  const show = (wanted) => {
    setCurrent(wanted);
    cardOf(wanted)?.scrollIntoView({ block: "nearest" });
  };
  const move = (step) => show(list[Math.max(0, Math.min(list.length - 1, list.findIndex((ask) => ask.id === id) + step))]?.id);
  const answer = (detail) => dispatchEvent(new CustomEvent("toolgate-answer", { detail }));
  // A key approves only what can be seen: the first press brings it into view.
  const approve = (number) => {
    const answers = cardOf(id)?.querySelector('[aria-label="Approve"]');
    if (isInView(answers)) answer({ kind: "approve", number });
    else answers?.scrollIntoView({ block: "nearest" });
  };
  useKeys("Approvals", [
    { key: "n", does: "next request", run: () => move(1) },
    { key: "p", does: "previous request", run: () => move(-1) },
    ...[1, 2, 3, 4].map((number) => ({ key: String(number), shown: "1 … 4", does: number === 1 && "approve, as the button with that number says", run: (event) => !event.repeat && approve(number) })),
    { key: "d", does: "deny, with a reason", run: () => answer({ kind: "deny" }) },
  ]);
  return html`<div class="cards" aria-live="polite">
    ${waiting.value.map((ask) => (ask.request ? html`<${ApprovalCard} key=${ask.id} ask=${ask} isCurrent=${ask.id === id} onFocus=${() => setCurrent(ask.id)} />` : html`<${QuestionCard} key=${ask.id} ask=${ask} />`))}
  </div>`;
}

/** The last answers, whoever gave them. */
function Answers() {
  const ends = Object.entries(answered.value).slice(-8).reverse();
  if (!ends.length) return null;
  return html`<section aria-labelledby="answers-title"><h2 id="answers-title" class="section">Answered just now</h2>
    <ul class="plain">${ends.map(([call, end]) => html`<li key=${call}><strong>${end.by}</strong> ${ANSWER_WORDS[end.kind]} <${CallLink} run=${end.run} call=${call}><span class="tool">${end.tool || "call"}</span><//> <span class="call-text">${end.what}</span> ${end.scope && html`<span class="badge">${scopeWords[end.scope]}</span>`} ${end.text && html`<span class="muted">“${end.text}”</span>`}</li>`)}</ul>
  </section>`;
}

export function ApprovalsView() {
  const count = waiting.value.length;
  return html`<${Heading} title="Waiting for you" note=${count ? `${count}` : ""} />
    ${count === 0 && html`<${Empty} icon="approvals">Nothing waits for you. New requests appear here by themselves.<//>`}
    <${WaitingCards} />
    <${Answers} />`;
}

// Running processes: the screen of a terminal cell by cell, typing, interrupting and killing.
import { html, useEffect, useRef, useState } from "./core.js";
import { get, post, segment } from "./api.js";
import { listen, ticks } from "./live.js";
import { Confirmed, Empty, Failure, Heading, Loading, noteError, Output, useLoaded, useNow, When } from "./parts.js";
import { shortId } from "./format.js";
import { go, route } from "./router.js";

const KEYS = { Enter: "\r", Backspace: "\x7f", Tab: "\t", Escape: "\x1b", ArrowUp: "\x1b[A", ArrowDown: "\x1b[B", ArrowRight: "\x1b[C", ArrowLeft: "\x1b[D", Home: "\x1b[H", End: "\x1b[F", PageUp: "\x1b[5~", PageDown: "\x1b[6~", Delete: "\x1b[3~" };

/** How often processes of other programs are looked at. */
const ELSEWHERE_MS = 800;

/** A colour of the palette as a class, and a free one as itself. */
function paint(run) {
  const [fg, bg] = run.inverse ? [run.bg ?? "inverse", run.fg ?? "inverse"] : [run.fg, run.bg];
  const style = {};
  const names = [run.bold && "b", run.underline && "u"];
  const set = (kind, property, color) => {
    if (!color) return;
    if (color.startsWith("#")) style[property] = color;
    else if (color === "inverse" || Number(color) < 16) names.push(`${kind}${color}`);
    else style[property] = xterm(Number(color));
  };
  set("f", "color", fg);
  set("k", "backgroundColor", bg);
  return { className: names.filter(Boolean).join(" "), style };
}

function xterm(index) {
  if (index >= 232) return `rgb(${Array(3).fill(8 + (index - 232) * 10).join(",")})`;
  const level = (value) => (value ? 55 + value * 40 : 0);
  const number = index - 16;
  return `rgb(${level(Math.floor(number / 36))},${level(Math.floor(number / 6) % 6)},${level(number % 6)})`;
}

function ScreenRow({ runs, cursor }) {
  let column = 0;
  return html`<div class="line">${runs.map((run, index) => {
    const from = column;
    column += [...run.text].length;
    const { className, style } = paint(run);
    const at = cursor - from;
    if (cursor >= from && cursor < column) {
      const letters = [...run.text];
      return html`<span key=${index} class=${className} style=${style}>${letters.slice(0, at).join("")}<span class="cursor">${letters[at]}</span>${letters.slice(at + 1).join("")}</span>`;
    }
    return html`<span key=${index} class=${className} style=${style}>${run.text}</span>`;
  })}</div>`;
}

function Terminal({ process, again }) {
  const [isTyping, setTyping] = useState(false);
  const box = useRef(null);
  const sending = useRef(/** @type {Promise<unknown>} */ (Promise.resolve()));
  const send = (text) => {
    sending.current = sending.current.then(() => post(`/v1/processes/${segment(process.id)}/input`, { text }).catch(noteError)).then(() => setTimeout(again, 60));
  };
  const keyed = (event) => {
    if (event.key === "]" && event.ctrlKey) {
      event.preventDefault();
      box.current.blur();
      return;
    }
    let text = KEYS[event.key] ?? (event.key.length === 1 && !event.metaKey && !event.altKey ? event.key : "");
    if (event.ctrlKey && event.key.length === 1) text = String.fromCharCode(event.key.toUpperCase().charCodeAt(0) & 31);
    if (!text) return;
    event.preventDefault();
    event.stopPropagation();
    send(text);
  };
  const pasted = (event) => {
    event.preventDefault();
    send(event.clipboardData.getData("text"));
  };
  const { screen } = process;
  return html`<div class="terminal ${isTyping ? "typing" : ""}">
    <pre class="screen" ref=${box} tabindex="0" data-raw-keys="1" role="group" aria-roledescription="terminal" aria-label="Screen of the process; what you type goes to it, Ctrl-] leaves" onKeyDown=${keyed} onPaste=${pasted} onFocus=${() => setTyping(true)} onBlur=${() => setTyping(false)}>${screen ? screen.rows.map((runs, index) => html`<${ScreenRow} key=${index} runs=${runs} cursor=${index === screen.cursor_row && !screen.cursor_hidden ? screen.cursor_column : -1} />`) : process.output}</pre>
    <p class="muted">${isTyping ? "What you type goes to the process. Ctrl-] leaves." : "Click or focus the screen to type into the process."}</p>
  </div>`;
}

function ProcessDetail({ id }) {
  const [version, setVersion] = useState(0);
  const loaded = useLoaded(() => get(`/v1/processes/${segment(id)}`), [id, version]);
  const isElsewhere = Boolean(loaded.value?.elsewhere);
  useEffect(() => {
    // What happens on the screen of another program's process isn't told by the stream.
    if (!isElsewhere) return undefined;
    const timer = setInterval(() => setVersion((count) => count + 1), ELSEWHERE_MS);
    return () => clearInterval(timer);
  }, [isElsewhere]);
  useEffect(() => {
    let timer = 0;
    const stop = listen((items) => {
      if (timer || !items.some((item) => item.process === id)) return;
      timer = setTimeout(() => {
        timer = 0;
        setVersion((count) => count + 1);
      }, 120);
    });
    return () => {
      stop();
      clearTimeout(timer);
    };
  }, [id]);
  const end = (interrupt) => async () => {
    await post(`/v1/processes/${segment(id)}/stop`, { interrupt });
    setTimeout(loaded.again, 150);
  };
  const process = loaded.value;
  if (loaded.error) return html`<p class="empty">${loaded.error.status === 404 ? "The process has ended." : loaded.error.message}</p>`;
  if (!process) return html`<${Loading} />`;
  return html`<section class="process" aria-label="Process">
    <header class="call-head"><h2><code>${process.command}</code></h2>
      <span><${Confirmed} label="Interrupt" question="Send Ctrl-C?" act=${end(true)} /> <${Confirmed} label="Kill" question="Kill it?" act=${end(false)} kind="danger" /></span></header>
    <p class="meta">${process.session} · in ${process.workdir === "." ? "the workspace" : process.workdir} · since <${When} at=${process.started} /> · <code>${shortId(process.id)}</code></p>
    ${process.terminal ? html`<${Terminal} process=${process} again=${loaded.again} />` : html`<${Output} text=${process.output ?? ""} label="Output of the process" /><${Terminal} process=${{ ...process, screen: null, output: "Type here to write to its input." }} again=${loaded.again} />`}
  </section>`;
}

export function ProcessesView() {
  const chosen = route.value.parts[1];
  const now = useNow(ELSEWHERE_MS);
  const loaded = useLoaded(() => get("/v1/processes"), [ticks.value.processes, now]);
  const list = loaded.value?.processes ?? [];
  return html`<${Heading} title="Processes" />
    <${Failure} error=${loaded.error} again=${loaded.again} />
    ${loaded.value && list.length === 0 && html`<${Empty} icon="processes">No process runs in this workspace.<//>`}
    <div class="table">${list.map((it) => html`<button type="button" key=${it.id} class="list-row ${it.id === chosen ? "selected" : ""}" onClick=${() => go(["processes", it.id])}>
      <code class="grow">${it.command}</code><span class="meta">${it.session} · <${When} at=${it.started} />${it.terminal ? " · terminal" : ""}${it.elsewhere ? " · in another program" : ""}</span>
    </button>`)}</div>
    ${chosen && html`<${ProcessDetail} key=${chosen} id=${chosen} />`}`;
}

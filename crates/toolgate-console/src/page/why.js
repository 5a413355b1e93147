// Why a call was decided as it was: the finding that decided, what else asks, and what lost, as a tree.
import { html } from "./core.js";
import { Decision, Words } from "./parts.js";

/** An effect in words, where the server hasn't worded it. */
export function effectWords(effect) {
  if (!effect) return "";
  const { kind, ...rest } = effect;
  const about = rest.path ?? rest.command ?? (rest.host ? `${rest.host}:${rest.port}` : undefined) ?? rest.process ?? rest.server ?? rest.agent ?? rest.name ?? rest.artifact ?? "";
  return `${kind.replaceAll("_", " ")} ${about}`.trim();
}

function FindingNode({ label, finding, isMain }) {
  return html`<li class=${isMain ? "main" : ""}>
    <div class="why-line"><span class="muted">${label}</span> <${Decision} decision=${finding.decision} /> <code>${finding.rule}</code> <span class="layer">${finding.layer}</span></div>
    ${finding.effect && html`<div class="why-about">on ${effectWords(finding.effect)}</div>`}
    <div class="why-reason"><${Words} text=${finding.reason} /></div>
  </li>`;
}

const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);

export function Why({ verdict, effects }) {
  if (!verdict) return html`<p class="muted">The call was rejected before it was judged.</p>`;
  const asks = (verdict.asks ?? []).filter((ask) => !same(ask, verdict.decided_by));
  return html`<div class="why">
    <p class="why-head"><${Decision} verdict=${verdict} /> ${verdict.confined && verdict.decision !== "deny" && html`<span class="muted">runs only in a sandbox</span>`} ${verdict.only_reads && verdict.decision !== "deny" && html`<span class="muted">reads only: nothing can be changed</span>`}</p>
    <ul class="tree">
      ${effects?.length > 0 && html`<li><span class="muted">touches</span><ul>${effects.map((effect, index) => html`<li key=${index} class="effect">${effect}</li>`)}</ul></li>`}
      <${FindingNode} label="decided by" finding=${verdict.decided_by} isMain />
      ${asks.map((ask, index) => html`<${FindingNode} key=${`a${index}`} label="also asks" finding=${ask} />`)}
      ${(verdict.lost ?? []).map((lost, index) => html`<${FindingNode} key=${`l${index}`} label="overruled" finding=${lost} />`)}
    </ul>
  </div>`;
}

/** The parts of a command, as policy read it. */
export function CommandParts({ parts, fault }) {
  return html`${fault && html`<p class="warn">It can't be parsed: ${fault}</p>`}
    <ul class="tree">
      ${(parts ?? []).map(
        (part, index) => html`<li key=${index} style=${{ marginLeft: `${part.level * 18}px` }}>
          <div class="why-line"><code>${part.command || "(redirection)"}</code> ${part.workdir && part.workdir !== "." && html`<span class="muted">in ${part.workdir}</span>`} ${part.wraps && html`<span class="layer">wrapper</span>`}</div>
          ${part.effects.map((effect, at) => html`<div key=${at} class="effect">${effect}</div>`)}
          ${part.needs.map((need, at) => html`<div key=${at} class="effect">needs ${need}</div>`)}
          ${part.runs_code && html`<div class="warn">runs code that can't be seen beforehand</div>`}
          ${part.unclear.map((unclear, at) => html`<div key=${at} class="warn">unknown: ${unclear}</div>`)}
        </li>`,
      )}
    </ul>`;
}

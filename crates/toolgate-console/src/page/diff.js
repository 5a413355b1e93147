// A diff as the server structured it, line by line as text.
import { html, useState } from "./core.js";
import { counted } from "./format.js";

const SIGN = { added: "+", removed: "−", same: " ", hunk: "", file: "", note: "" };
const FIRST = 400;

export function Diff({ diff, label = "Diff" }) {
  const [shown, setShown] = useState(FIRST);
  if (!diff) return null;
  if (!diff.note && !diff.lines.length) return null;
  if (diff.note) return html`<p class="muted">${diff.note}</p>`;
  const lines = diff.lines.filter((line) => line.kind !== "file" || !/^(---|\+\+\+|index) /.test(line.text)).slice(0, shown);
  const more = diff.lines.length - Math.max(lines.length, Math.min(shown, diff.lines.length));
  return html`<div class="diff" role="region" aria-label=${label} tabindex="0">
    <table>
      <tbody>
        ${lines.map(
          (line, index) => html`<tr key=${index} class=${`d-${line.kind}`}>
            <td class="number">${line.old ?? ""}</td>
            <td class="number">${line.new ?? ""}</td>
            <td class="sign" aria-label=${line.kind === "added" || line.kind === "removed" ? line.kind : undefined}>${SIGN[line.kind]}</td>
            <td class="code">${line.text}</td>
          </tr>`,
        )}
      </tbody>
    </table>
    ${more > 0 && html`<button type="button" class="small" onClick=${() => setShown(shown + 2000)}>Show ${counted(more, "more line")}</button>`}
    ${diff.more_lines > 0 && more <= 0 && html`<p class="muted">${counted(diff.more_lines, "more line")} not shown.</p>`}
  </div>`;
}

export const DiffCounts = ({ diff }) =>
  diff?.additions || diff?.deletions
    ? html`<span class="counts"><span class="plus">+${diff.additions}</span> <span class="minus">−${diff.deletions}</span></span>`
    : null;

/** Files that were changed, each with its diff. */
export function Changes({ changes, open = true }) {
  return changes.map(
    (change, index) => html`<details class="file" key=${change.path + index} open=${open && index < 5}>
      <summary>
        <span class="badge what-${change.what}">${change.what}</span> <span class="path">${change.path}</span> <${DiffCounts} diff=${change.diff} />
        ${change.folded && html`<span class="muted">build output: +${change.folded.created} ~${change.folded.changed} −${change.folded.deleted}</span>`}
      </summary>
      <${Diff} diff=${change.diff} label=${`Diff of ${change.path}`} />
    </details>`,
  );
}

// A diff as the server structured it, line by line as text.
import { html, useState } from "./core.js";
import { counted } from "./format.js";
import { Words } from "./parts.js";

const SIGN = { added: "+", removed: "−", same: " ", hunk: "", file: "", note: "" };
const FIRST = 400;

/** The lines that say something: the name of the only file and its usual mode are said around it. */
function toldLines(diff) {
  const isOne = diff.lines.filter((line) => line.text.startsWith("diff --git ")).length === 1;
  const known = isOne ? /^(---|\+\+\+|index|diff --git|new file mode (100644|040755)|deleted file mode)( |$)/ : /^(---|\+\+\+|index) /;
  return diff.lines.filter((line) => line.kind !== "file" || !known.test(line.text));
}

export function Diff({ diff, label = "Diff" }) {
  const [shown, setShown] = useState(FIRST);
  if (!diff) return null;
  if (!diff.note && !diff.lines.length) return null;
  if (diff.note) return html`<p class="muted">${diff.note}</p>`;
  const told = toldLines(diff);
  const lines = told.slice(0, shown);
  const more = told.length - lines.length;
  return html`<div class="diff" role="region" aria-label=${label} tabindex="0">
    <table>
      <tbody>
        ${lines.map(
          (line, index) => line.kind === "note" || line.kind === "file" ? html`<tr key=${index} class=${`d-${line.kind}`}><td colspan="4"><${Words} text=${line.text} /></td></tr>` : html`<tr key=${index} class=${`d-${line.kind}`}>
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
  return changes.map((change, index) => {
    const head = html`<span class="badge what-${change.what}">${change.what}</span> <span class="path">${change.path}</span> <${DiffCounts} diff=${change.diff} />
      ${change.folded && html`<span class="muted">build output: +${change.folded.created} ~${change.folded.changed} −${change.folded.deleted}</span>`}`;
    // A directory, for one, has nothing to open.
    if (!change.diff || (!change.diff.note && !toldLines(change.diff).length)) return html`<div class="file" key=${change.path + index}><div>${head}</div></div>`;
    return html`<details class="file" key=${change.path + index} open=${open && index < 5}>
      <summary>${head}</summary>
      <${Diff} diff=${change.diff} label=${`Diff of ${change.path}`} />
    </details>`;
  });
}

// What is shown while nobody is signed in.
import { html } from "./core.js";
import { Mark } from "./icons.js";
import { note } from "./parts.js";

export function SignIn({ error }) {
  const copy = async () => {
    await navigator.clipboard.writeText("toolgate console");
    note("Copied.");
  };
  return html`<main class="signin" id="main">
    <div class="signin-box">
      <h1><${Mark} />Toolgate</h1>
      ${error ? html`<p class="failure" role="alert">${error.message}</p>` : html`<p>Nobody is signed in on this browser.</p>`}
      <p>Run this in the workspace, and open the link that it prints:</p>
      <p class="command"><code>toolgate console</code> <button type="button" class="small" onClick=${copy}>Copy</button></p>
      <p class="meta">A link works once, for ten minutes. A browser stays signed in for twelve hours.</p>
    </div>
  </main>`;
}

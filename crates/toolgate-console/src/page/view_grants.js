// Approvals that reach beyond one call, and revoking them.
import { html } from "./core.js";
import { get, remove, segment } from "./api.js";
import { ticks } from "./live.js";
import { Confirmed, Empty, Failure, Heading, Loading, note, RunLink, useLoaded, When, Words } from "./parts.js";
import { scopeWords, shortId } from "./format.js";

export function GrantsView() {
  const loaded = useLoaded(() => get("/v1/grants"), [ticks.value.queue]);
  const revoke = (grant) => async () => {
    await remove(`/v1/grants/${segment(grant.id)}`);
    note("Revoked. The next such call asks again.");
    loaded.again();
  };
  const list = loaded.value?.grants ?? [];
  return html`<${Heading} title="Grants" note="Approvals that reach beyond one call" />
    <${Failure} error=${loaded.error} again=${loaded.again} />
    ${!loaded.value && !loaded.error && html`<${Loading} />`}
    ${loaded.value && list.length === 0 && html`<${Empty} icon="grants">Nothing is granted beyond single calls.<//>`}
    ${list.map((grant) => html`<article class="card grant" key=${grant.id}>
      <header><h2><span class="badge ask">${scopeWords[grant.scope]}</span><span><${Words} text=${grant.what} /></span></h2><${Confirmed} label="Revoke" question="Revoke it?" act=${revoke(grant)} kind="danger" /></header>
      <p class="meta"><${Words} text=${grant.reach} /> · by <strong>${grant.by}</strong> <${When} at=${grant.since} />${grant.until && html` · until <${When} at=${grant.until} />`} · <${RunLink} run=${grant.run}>${shortId(grant.run)}<//></p>
    </article>`)}`;
}

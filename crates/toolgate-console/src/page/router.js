// The address says what is shown: `#/run/RUN/call/CALL?filter=failed`. It can be copied, and Back works.
import { signal } from "./core.js";

function parse() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  const parts = path.split("/").filter(Boolean).map((part) => {
    try {
      return decodeURIComponent(part);
    } catch {
      return part;
    }
  });
  return { parts: parts.length ? parts : ["now"], query: Object.fromEntries(new URLSearchParams(query ?? "")) };
}

export const route = signal(parse());
addEventListener("hashchange", () => (route.value = parse()));

/** The address of a view. */
export function to(parts, query = {}) {
  const words = Object.entries(query).filter(([, value]) => value !== undefined && value !== "" && value !== null);
  const text = new URLSearchParams(words).toString();
  return `#/${parts.map(encodeURIComponent).join("/")}${text ? `?${text}` : ""}`;
}

export function go(parts, query) {
  location.hash = to(parts, query);
}

/** Changes the query of what is shown, without a step for Back. */
export function setQuery(query) {
  history.replaceState(null, "", to(route.value.parts, { ...route.value.query, ...query }));
  route.value = parse();
}

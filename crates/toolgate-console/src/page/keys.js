// Keys, as tables: a view says which it has while it is shown, and the help sheet lists them.
import { signal } from "./core.js";
import { useEffect, useRef } from "./core.js";

/** The tables in force, the innermost last. */
export const tables = signal([]);

const typesText = (element) =>
  element instanceof HTMLInputElement || element instanceof HTMLTextAreaElement || element instanceof HTMLSelectElement || element?.isContentEditable;

let prefix = "";
let prefixTimer = 0;

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  if (typesText(event.target) && event.key !== "Escape") return;
  if (event.target instanceof Element && event.target.closest("[data-raw-keys]")) return;
  const name = prefix + event.key;
  for (const table of [...tables.value].reverse()) {
    const found = table.keys.find((entry) => entry.key === name);
    if (found) {
      prefix = "";
      event.preventDefault();
      found.run(event);
      return;
    }
  }
  prefix = event.key === "g" && !prefix ? "g " : "";
  clearTimeout(prefixTimer);
  prefixTimer = setTimeout(() => (prefix = ""), 1500);
});

/** Has these keys while the component is shown: [{key, does, run}]. */
export function useKeys(title, keys) {
  const current = useRef(keys);
  current.current = keys;
  useEffect(() => {
    const table = {
      title,
      get keys() {
        return current.current;
      },
    };
    tables.value = [...tables.value, table];
    return () => {
      tables.value = tables.value.filter((known) => known !== table);
    };
  }, [title]);
}

// A list of any length that draws only what can be seen. Rows have one height; pages of them are loaded as they come into
// view, and kept while they are near.
import { html, useEffect, useLayoutEffect, useRef, useState } from "./core.js";

const PAGE = 200;

/**
 * load(offset, limit) gives {total, rows}. `version` changes when what is loaded may have changed; `reset` when it is
 * another list. `row(data, index, isSelected)` draws one; `isShown(data)` says which is open beside the list.
 */
export function Windowed({ load, version, reset, rowHeight, row, label, selected, isShown, onSelect, onOpen, onLoaded, follow }) {
  const box = useRef(null);
  const pages = useRef(new Map());
  const loading = useRef(new Set());
  const [view, setView] = useState({ top: 0, height: 600 });
  const [total, setTotal] = useState(null);
  const [, redraw] = useState(0);
  const epoch = useRef(0);
  const atEnd = useRef(Boolean(follow));

  const first = Math.max(0, Math.floor(view.top / rowHeight) - 10);
  const last = Math.min(total ?? 0, Math.ceil((view.top + view.height) / rowHeight) + 10);

  const fetchPage = async (page, force) => {
    const key = `${epoch.current}:${page}`;
    if (loading.current.has(key) || (!force && pages.current.has(page))) return;
    loading.current.add(key);
    const mine = epoch.current;
    try {
      const got = await load(page * PAGE, PAGE);
      if (mine !== epoch.current) return;
      pages.current.set(page, got.rows);
      if (pages.current.size > 12) {
        const near = Math.floor(first / PAGE);
        for (const known of [...pages.current.keys()]) if (Math.abs(known - near) > 4) pages.current.delete(known);
      }
      setTotal(got.total);
      onLoaded?.(got);
      redraw((count) => count + 1);
    } catch {
      // The view around it says what is wrong.
    } finally {
      loading.current.delete(key);
    }
  };

  useEffect(() => {
    epoch.current += 1;
    pages.current = new Map();
    setTotal(null);
    if (box.current) box.current.scrollTop = 0;
    fetchPage(0, true);
  }, [reset]);

  useEffect(() => {
    if (total === null) return;
    const shown = new Set();
    for (let page = Math.floor(first / PAGE); page <= Math.floor(Math.max(first, last - 1) / PAGE); page++) shown.add(page);
    // Others are loaded again when they come into view.
    for (const known of [...pages.current.keys()]) if (!shown.has(known)) pages.current.delete(known);
    for (const page of shown) fetchPage(page, true);
  }, [version]);

  useEffect(() => {
    if (total === null) return;
    for (let page = Math.floor(first / PAGE); page <= Math.floor(Math.max(first, last - 1) / PAGE); page++) fetchPage(page, false);
  }, [first, last, total]);

  useLayoutEffect(() => {
    const it = box.current;
    const measure = () => setView((before) => (before.height === it.clientHeight ? before : { ...before, height: it.clientHeight }));
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(it);
    return () => observer.disconnect();
  }, []);

  useLayoutEffect(() => {
    if (follow && atEnd.current && box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [total]);

  const scrolled = () => {
    const it = box.current;
    atEnd.current = it.scrollTop + it.clientHeight >= it.scrollHeight - rowHeight * 2;
    setView({ top: it.scrollTop, height: it.clientHeight });
  };

  const at = (index) => pages.current.get(Math.floor(index / PAGE))?.[index % PAGE];
  const show = (index) => {
    const it = box.current;
    if (index * rowHeight < it.scrollTop) it.scrollTop = index * rowHeight;
    else if ((index + 1) * rowHeight > it.scrollTop + it.clientHeight) it.scrollTop = (index + 1) * rowHeight - it.clientHeight;
  };
  const keyed = (event) => {
    const steps = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1, PageDown: 20, PageUp: -20, Home: -Infinity, End: Infinity };
    if (event.key in steps && total) {
      const next = Math.max(0, Math.min(total - 1, (selected ?? -1) + steps[event.key]));
      event.preventDefault();
      event.stopPropagation();
      onSelect?.(next, at(next));
      show(next);
    } else if ((event.key === "Enter" || event.key === "ArrowRight" || event.key === "ArrowLeft" || event.key === " ") && at(selected)) {
      event.preventDefault();
      event.stopPropagation();
      onOpen?.(at(selected), event.key, selected);
    }
  };

  const drawn = [];
  for (let index = first; index < last; index++) {
    const data = at(index);
    drawn.push(
      html`<div
        key=${index}
        id=${`row-${index}`}
        role="row"
        aria-rowindex=${index + 1}
        aria-selected=${index === selected ? "true" : "false"}
        class="wrow ${index === selected ? "selected" : ""} ${data && isShown(data) ? "shown" : ""}"
        style=${{ top: `${index * rowHeight}px`, height: `${rowHeight}px` }}
        onClick=${() => {
          if (!data) return;
          onSelect?.(index, data);
          onOpen?.(data, "click", index);
        }}
      >
        ${data ? row(data, index, index === selected) : html`<span role="gridcell" class="muted">…</span>`}
      </div>`,
    );
  }
  return html`<div
    class="windowed"
    ref=${box}
    role="grid"
    aria-label=${label}
    aria-rowcount=${total ?? 0}
    aria-activedescendant=${selected !== undefined && selected >= first && selected < last ? `row-${selected}` : undefined}
    tabindex="0"
    onScroll=${scrolled}
    onKeyDown=${keyed}
  >
    <div class="wspace" role="rowgroup" style=${{ height: `${(total ?? 0) * rowHeight}px` }}>${drawn}</div>
    ${total === 0 && html`<p class="empty">Nothing here.</p>`}
  </div>`;
}

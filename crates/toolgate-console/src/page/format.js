// Times, sizes and names as people read them.

const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const day = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit" });

/** The time of day, with the date if it was on another one. */
export function time(text) {
  if (!text) return "";
  const at = new Date(text);
  return at.toDateString() === new Date().toDateString() ? clock.format(at) : day.format(at);
}

export function ago(text, now = Date.now()) {
  const seconds = Math.max(0, Math.round((now - new Date(text).getTime()) / 1000));
  if (seconds < 5) return "now";
  if (seconds < 60) return `${seconds} s ago`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h ago`;
  return `${Math.floor(seconds / 86_400)} d ago`;
}

export function duration(ms) {
  if (ms === null || ms === undefined) return "";
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(ms < 10_000 ? 1 : 0)} s`;
  if (ms < 3_600_000) return `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1000)} s`;
  return `${Math.floor(ms / 3_600_000)} h ${Math.round((ms % 3_600_000) / 60_000)} min`;
}

export function bytes(count) {
  if (count < 1024) return `${count} B`;
  if (count < 1024 ** 2) return `${(count / 1024).toFixed(1)} KB`;
  return `${(count / 1024 ** 2).toFixed(1)} MB`;
}

export const grouped = (count) => new Intl.NumberFormat().format(count);
export const counted = (count, noun) => `${grouped(count)} ${noun}${count === 1 ? "" : "s"}`;

/** An id without its middle. */
export function shortId(id) {
  if (!id || id.length <= 18) return id ?? "";
  return `${id.slice(0, 9)}…${id.slice(-6)}`;
}

export const scopeWords = { call: "Once", run: "This run", session: "This session", always: "Always" };

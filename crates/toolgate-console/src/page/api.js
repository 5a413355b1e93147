// Requests to the public API under /v1, the same that every other client uses.
import { signal } from "./core.js";

/** Who is signed in: undefined while unknown, null if nobody is. */
export const signedIn = signal(undefined);

export class ApiError extends Error {
  constructor(status, code, message, hint) {
    super(message);
    this.status = status;
    this.code = code;
    this.hint = hint;
  }
}

/** Sends a request; a refused one throws an ApiError with the server's own words. */
export async function request(method, path, body) {
  const headers = { Accept: "application/json" };
  if (method !== "GET") headers["X-Toolgate-Console"] = "1";
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let response;
  try {
    response = await fetch(path, {
      method,
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
      credentials: "same-origin",
      cache: "no-store",
    });
  } catch {
    throw new ApiError(0, "unreachable", "The server can't be reached.", "It is tried again by itself.");
  }
  if (response.status === 204) return null;
  const text = await response.text();
  let value = null;
  try {
    value = text ? JSON.parse(text) : null;
  } catch {
    // An answer without JSON has only its status.
  }
  if (response.ok) return value;
  if (response.status === 401) signedIn.value = null;
  const error = value?.error ?? {};
  throw new ApiError(response.status, error.code ?? "failed", error.message ?? `Status ${response.status}`, error.hint ?? "");
}

export const get = (path) => request("GET", path);
export const post = (path, body = {}) => request("POST", path, body);
export const remove = (path) => request("DELETE", path);

/** A path with a query, without what is empty. */
export function withQuery(path, query) {
  const words = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== "" && value !== false);
  const text = new URLSearchParams(words.map(([name, value]) => [name, String(value)])).toString();
  return text ? `${path}?${text}` : path;
}

export const segment = encodeURIComponent;

/** Exchanges the one-time link in the address for a cookie, and takes it out of the address and the history. */
export async function signInFromAddress() {
  const once = new URLSearchParams(location.hash.slice(1)).get("once");
  if (!once) return null;
  history.replaceState(null, "", "/#/now");
  return post("/v1/console/session", { once });
}

export async function loadSession() {
  try {
    signedIn.value = await get("/v1/console/session");
  } catch (error) {
    if (error.status === 401 || error.status === 403) signedIn.value = null;
    else throw error;
  }
}

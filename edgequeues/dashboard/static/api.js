// Calls to the server. What it refuses becomes a Problem, which says what happened and what to do.

/** What went wrong with a call, for people (`message`) and for programs (`code`, `status`). */
export class Problem extends Error {
  /**
   * @param {number} status 0: there was no answer
   * @param {string} code
   * @param {string} title
   * @param {string} detail
   */
  constructor(status, code, title, detail) {
    super(detail || title);
    this.name = "Problem";
    this.status = status;
    this.code = code;
    this.title = title;
  }
}

/** A path whose parts are percent-encoded: path`/v1/spaces/${space}/queues`. */
export function path(texts, ...parts) {
  return texts.reduce((whole, text, index) => whole + encodeURIComponent(parts[index - 1]) + text);
}

/**
 * The address of a queue, or of an entry of it, as one part of a path.
 * @param {string} space
 * @param {string} queue its name or id
 * @param {string} [entry]
 */
export function dxn(space, queue, entry) {
  return ["dxn:queue", space, queue, ...(entry === undefined ? [] : [entry])].join(":");
}

/**
 * A query string, with its question mark; what is null, undefined or "" is left out.
 * @param {Record<string, unknown>} [fields] a list gives its name several times
 */
export function query(fields = {}) {
  const pairs = new URLSearchParams();
  for (const [name, value] of Object.entries(fields)) {
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one !== null && one !== undefined && one !== "") pairs.append(name, String(one));
    }
  }
  const text = pairs.toString();
  return text && `?${text}`;
}

/**
 * The calls of a page, all of them ended by `signal`.
 * @param {{onSignedOut: () => void, signal?: AbortSignal}} options onSignedOut: what a 401 means
 */
export function makeApi({ onSignedOut, signal }) {
  async function ask(method, target, body) {
    const options = { method, signal, headers: { accept: "application/json" }, credentials: "same-origin" };
    if (body !== undefined) {
      options.headers["content-type"] = "application/json";
      options.body = typeof body === "string" ? body : JSON.stringify(body);
    }
    let answer;
    try {
      answer = await fetch(target, options);
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new Problem(0, "unreachable", "No answer",
        "The server did not answer. Is it running, and is this computer connected? Nothing is known to have changed.");
    }
    const text = await answer.text();
    if (answer.ok) return text;
    if (answer.status === 401 && !target.startsWith("/ui/")) onSignedOut();
    throw problemOf(answer.status, text);
  }
  const parsed = async (...call) => {
    const text = await ask(...call);
    return text ? JSON.parse(text) : null;
  };
  return {
    /** The answer as it came: for data whose digits must stay as they are. */
    text: (target, fields) => ask("GET", target + query(fields)),
    get: (target, fields) => parsed("GET", target + query(fields)),
    /** body: a value, or text that is JSON already. */
    post: (target, body, fields) => parsed("POST", target + query(fields), body),
    /** The answer as it came. */
    postText: (target, body, fields) => ask("POST", target + query(fields), typeof body === "string" ? body : JSON.stringify(body)),
    put: (target, body, fields) => parsed("PUT", target + query(fields), body),
    patch: (target, body, fields) => parsed("PATCH", target + query(fields), body),
    delete: (target, fields) => parsed("DELETE", target + query(fields)),
  };
}

function problemOf(status, text) {
  try {
    const told = JSON.parse(text);
    return new Problem(status, told.code ?? "", told.title ?? `Status ${status}`, told.detail ?? "");
  } catch {
    return new Problem(status, "", `Status ${status}`,
      `The answer has status ${status} and does not say why. Something between this page and the server may have given it.`);
  }
}

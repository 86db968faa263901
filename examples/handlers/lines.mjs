// The command's side of `edgequeues consume --command`: JSON lines over standard input and output.
// Needs Node.js 20 or newer, and nothing else. The protocol is in docs/guides/handlers.md.
//
//   import { serve } from "./lines.mjs";
//   serve(async (event, ctx) => ({ reply: { channel: "sms", body: "Thanks!" } }));

import { createInterface } from "node:readline";

/** What could not be done now. retryAfterMs: how long to wait before the next attempt. */
export class TryAgain extends Error {
  constructor(message = "try again", { retryAfterMs } = {}) {
    super(message);
    this.retryAfterMs = retryAfterMs;
  }
}

/** What can never be done: the message becomes a dead letter. */
export class GiveUp extends Error {
  permanent = true;
}

/** Deal with events until the daemon says that there are no more. */
export function serve(handle, { input = process.stdin, output = process.stdout } = {}) {
  // What is printed would be taken for messages, so it goes to standard error, which the daemon logs.
  for (const name of ["log", "info", "debug"]) console[name] = console.error;

  const calls = new Map(); // by their number: what waits for the answer
  const running = new Map(); // by the event's number: how to tell its handler that the time is up
  let last = 0;

  const say = (message) => output.write(JSON.stringify(message) + "\n");

  const call = (id, method, params) =>
    new Promise((resolve, reject) => {
      if (!running.has(id)) throw new TryAgain("the attempt is over: its context is of no more use");
      const number = ++last;
      calls.set(number, { resolve, reject });
      say({ type: "call", id, call: number, method, params });
    });

  const context = (id, message, signal) => ({
    attempt: message.attempt,
    budgetMs: message.budgetMs,
    signal,
    now: () => new Date(),
    url: async (ref) => (await call(id, "url", { ref })).presignedGetUrl,
    async download(ref, { start = 0, end } = {}) {
      const range = start || end !== undefined ? { range: `bytes=${start}-${end === undefined ? "" : end - 1}` } : {};
      const response = await fetch(await this.url(ref), { headers: range, redirect: "error", signal });
      if (!response.ok) throw new TryAgain(`the object store answered ${response.status}`);
      return response;
    },
    sendEmail: (reply) => call(id, "sendEmail", reply),
    sendSms: (reply) => call(id, "sendSms", reply),
    logger: Object.fromEntries(
      ["debug", "info", "warning", "error"].map((level) => [
        level,
        (text, fields = {}) => void say({ type: "call", id, method: "log", params: { level, message: text, fields } }),
      ]),
    ),
    metrics: {
      count: (name, value = 1, labels = {}) =>
        void say({ type: "call", id, method: "count", params: { name, value, labels } }),
      observe: (name, value, labels = {}) =>
        void say({ type: "call", id, method: "observe", params: { name, value, labels } }),
    },
  });

  const deal = async (message) => {
    const { id } = message;
    const controller = new AbortController();
    running.set(id, controller);
    const late = new Promise((_, reject) =>
      controller.signal.addEventListener("abort", () => reject(new TryAgain("the time is up"))),
    );
    try {
      const result = await Promise.race([handle(message.event, context(id, message, controller.signal)), late]);
      say({ type: "result", id, result: result ?? null });
    } catch (error) {
      const text = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
      const { retryAfterMs, permanent } = error ?? {};
      say({ type: "error", id, error: text, retryAfterMs, permanent: permanent === true });
    } finally {
      running.delete(id);
    }
  };

  const answer = ({ call: number, result, error, permanent, retryAfterMs }) => {
    const waiting = calls.get(number);
    calls.delete(number);
    if (!waiting) return;
    if (error === undefined) waiting.resolve(result);
    else waiting.reject(permanent ? new GiveUp(error) : new TryAgain(error, { retryAfterMs }));
  };

  const lines = createInterface({ input, crlfDelay: Infinity });
  lines.on("line", (line) => {
    const message = JSON.parse(line);
    if (message.type === "hello") {
      if (message.version !== 1) throw new Error(`version ${message.version} of the protocol is not known here`);
      say({ type: "ready" });
    } else if (message.type === "event") deal(message);
    else if (message.type === "answer") answer(message);
    else if (message.type === "cancel") running.get(message.id)?.abort();
    else if (message.type === "stop") lines.close();
  });
  lines.on("close", () => {
    for (const controller of running.values()) controller.abort();
  });
}

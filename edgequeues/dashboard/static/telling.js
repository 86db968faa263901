// Why a message is not delivered, as a sentence that a human reads.

import { clock, counted } from "./format.js";

/**
 * What one consumer's part of GET <q>/explain means.
 * @param {object} told @param {object | null} head where the message waits behind others, the first of them
 * @param {number} now unix ms
 */
export function sentence(told, head, now) {
  const tried = told.attempts ? `, after ${counted(told.attempts, "attempt")}` : "";
  const said = {
    ready: () => `It is ready: the next pull may get it${tried}.`,
    paused: () => "It is ready, but the queue is paused: resume the queue, and it goes on.",
    delayed: () => `It waits for its time, ${at(told.until, now)}${tried}.`,
    behind: () => behind(told, head, now),
    leased: () => `It ${leased(told.worker, told.until, now)}, for attempt ${told.attempts}.`,
    backing_off: () => `It ${backingOff(told.attempts, told.until, told.last_error, now)}.`,
    filling: () => "Its turn is to come: the consumer is new, and is still given what was there before it.",
    expired: () => "It has expired and will not be handed out any more.",
    finished: () => `Nothing is left to be done: it was acked, given up, cancelled or expired${last(told)}.`,
  };
  return said[told.why]?.() ?? `${told.why.replaceAll("_", " ")}.`; // a newer server may know more reasons
}

const at = (ms, now) => (ms === null ? "which is not known" : clock(ms, now));

function behind(told, head, now) {
  const line = told.key ? ` of key ${told.key}` : "";
  const said = `It waits behind ${counted(told.behind, "message")}${line}`;
  return head ? `${said}. The first of them, ${head.id}, ${standing(head, now)}.` : `${said}.`;
}

function standing(one, now) {
  const said = {
    leased: () => leased(one.worker, one.due, now),
    backoff: () => backingOff(one.attempts, one.due, one.last_error, now),
    scheduled: () => `waits for its time, ${at(one.due, now)}`,
  };
  return said[one.state]?.() ?? `is ${one.state}`;
}

const leased = (worker, until, now) => `is leased by ${worker || "somebody without a name"} until ${at(until, now)}`;

function backingOff(attempts, until, error, now) {
  const times = attempts === 1 ? "once" : `${attempts} times`;
  return `has failed ${times} and is tried again at ${at(until, now)}${error ? `: ${error}` : ""}`;
}

function last(told) {
  const one = told.history.at(-1);
  return one ? `; the last attempt that was not acked: ${one.ending}${one.error ? `, ${one.error}` : ""}` : "";
}

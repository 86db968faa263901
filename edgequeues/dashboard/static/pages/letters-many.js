// Replaying and deleting many dead letters: first what it would be, then a part at a time, to be stopped at any time.

import { path } from "../api.js";
import { trouble } from "../dialogs.js";
import { h, replace } from "../dom.js";
import { count, counted, short } from "../format.js";
import { elements, member } from "../jsontext.js";
import { button, field } from "../widgets.js";

const PART = 100; // letters a call

/** Where the dead letters of a queue are asked for. @param {string} queue */
export const lettersAt = (queue) => path`/admin/queues/${queue}/dlq`;

/**
 * Open a question over the page. Escape closes it, and the focus goes back to where it was.
 * @param {string} title @param {(close: () => void) => import("../dom.js").Child[]} fill @param {() => void} [closed]
 */
function modal(title, fill, closed = () => {}) {
  const heading = h("h2", { id: "modal-title", tabindex: "-1", autofocus: true }, title);
  const dialog = h("dialog", { "aria-labelledby": "modal-title" }, heading);
  dialog.append(...fill(() => dialog.close()));
  dialog.addEventListener("close", () => {
    dialog.remove();
    closed();
  });
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

/**
 * Replay dead letters: those of `order`, an object with ids or a filter as the API has it.
 * @param {{api: any, space: string, queue: string, say: any, again: () => void, signal: AbortSignal}} place @param {any} order
 */
export async function replayLetters(place, order) {
  const seen = await look(place, order);
  if (seen === null) return;
  const run = { stopped: false, running: false, done: 0 };
  const pace = h("input", { type: "number", min: "0.01", max: "10000", step: "any", name: "per_second" });
  const progress = h("div", { role: "status", "aria-live": "polite" });
  modal("Replay dead letters", (close) => {
    const start = button(`Replay ${counted(seen.count, "letter")}`, begin, { class: "primary", disabled: seen.count === 0 });
    const stop = button("Stop", () => {
      run.stopped = true;
      stop.disabled = true;
    }, { hidden: true });
    const leave = button("Cancel", close);
    async function begin() {
      const perSecond = pace.value === "" ? undefined : Number(pace.value);
      if (!pace.reportValidity()) return;
      [start.hidden, stop.hidden, leave.hidden, pace.disabled, run.running] = [true, false, true, true, true];
      stop.focus();
      replace(progress, h("p", {}, "Replaying …"));
      try {
        replace(progress, h("p", {}, await inParts(place, order, perSecond, seen.count, run, progress)));
      } catch (error) {
        replace(progress, h("p", {}, `${counted(run.done, "letter")} replayed before it failed.`), trouble(error));
      }
      [stop.hidden, leave.hidden, leave.textContent, run.running] = [true, false, "Close", false];
      leave.focus();
    }
    return [
      ...seen.nodes,
      h("p", {}, "Each one becomes a new message at the end of the queue it came from, with attempts from 0. They stay here, marked as replayed."),
      field("Messages per second", pace, "Empty: as fast as it goes. Else each one is due so much later than the one before."),
      progress, h("div", { class: "buttons" }, leave, stop, start)];
  }, () => {
    run.stopped = true; // Escape while it runs: the part that is on its way is finished, and no other is begun
    if (run.done) place.again();
  });
}

/** Replay until nothing is left, or it is stopped; tell what became of it. */
async function inParts({ api, space, queue, signal }, order, perSecond, wanted, run, progress) {
  const bar = h("progress", { max: wanted, value: 0, "aria-label": "Replayed so far" });
  const said = h("p", {}, "");
  replace(progress, bar, said);
  const totals = { replayed: 0, already: 0, no_queue: 0, later: 0, invalid: 0, unknown: 0 };
  const left = order.ids ? [...order.ids] : null;
  let more = true;
  while (more && !run.stopped && !signal.aborted) {
    const part = left ? { ids: left.splice(0, PART) } : { ...order, limit: PART };
    const answer = await api.post(`${lettersAt(queue)}/replay`, { ...part, ...(perSecond && { per_second: perSecond }) }, { tenant_id: space });
    totals.replayed += answer.totals.replayed ?? 0;
    for (const name of ["already", "no_queue", "later", "invalid", "unknown"]) {
      // A filter finds again what could not be replayed, so that is counted once; ids are asked once each.
      totals[name] = (left ? totals[name] : 0) + (answer.totals[name] ?? 0);
    }
    run.done = totals.replayed;
    bar.value = run.done;
    replace(said, `${count(run.done)} of ${count(wanted)} replayed`);
    more = left ? left.length > 0 : answer.more && answer.totals.replayed > 0;
  }
  const rest = [
    [totals.already, "replayed before"], [totals.no_queue, "without a queue to go to"], [totals.later, "left: at this pace they would come too late"],
    [totals.invalid, "not taken by the queue's spec"], [totals.unknown, "gone"],
  ].filter(([n]) => n).map(([n, what]) => `${count(n)} ${what}`);
  return `${run.stopped ? "Stopped. " : ""}${[`${counted(totals.replayed, "letter")} replayed`, ...rest].join("; ")}.`;
}

/**
 * Delete dead letters for good, once the name of the queue was typed.
 * @param {{api: any, space: string, queue: string, say: any, again: () => void, signal: AbortSignal}} place @param {any} order
 */
export async function purgeLetters(place, order) {
  const { api, space, queue, say, again } = place;
  const { replayed, ...unmarked } = order;
  // A preview counts what a replay would take: not what was replayed, which a deletion takes too.
  const seen = order.ids ? await look(place, order) : replayed ? { count: null, nodes: [] } : await look(place, Object.keys(unmarked).length ? unmarked : { all: true });
  if (seen === null) return;
  const typed = h("input", { name: "name", autocomplete: "off", spellcheck: "false" });
  const wrong = h("div");
  let done = false;
  modal("Delete dead letters", (close) => {
    const yes = button("Delete for good", remove, { class: "danger", disabled: true });
    typed.addEventListener("input", () => (yes.disabled = typed.value !== queue));
    typed.addEventListener("keydown", (event) => event.key === "Enter" && !yes.disabled && remove());
    async function remove() {
      yes.disabled = true;
      try {
        const answer = await api.post(`${lettersAt(queue)}/purge`, order, { tenant_id: space });
        done = true;
        close();
        say(`${counted(answer.deleted, "dead letter")} deleted.`);
      } catch (error) {
        replace(wrong, trouble(error));
        yes.disabled = false;
      }
    }
    return [
      ...seen.nodes,
      !order.ids && replayed === undefined && h("p", {}, "Those that were replayed already, and match, are deleted with them."),
      h("p", {}, h("strong", {}, "They cannot be brought back."), " Messages that were made of them by a replay stay."),
      field(`Type the queue's name, ${queue}, to go on`, typed), wrong,
      h("div", { class: "buttons" }, button("Cancel", close), yes)].filter(Boolean);
  }, () => done && again());
}

/** How many letters an order names, and the first ten. null: it failed, and that was said. */
async function look({ api, space, queue, say }, order) {
  if (order.ids) return { count: order.ids.length, nodes: [h("p", {}, `${counted(order.ids.length, "letter")} chosen.`)] };
  try {
    // As it came: a number with many digits must not change on its way into the page.
    const answer = await api.postText(`${lettersAt(queue)}/replay`, { ...order, preview: true }, { tenant_id: space });
    const total = JSON.parse(answer).count;
    const first = elements(member(answer, "dead_letters") ?? "[]").map((one) => ({ ...JSON.parse(one), raw: member(one, "preview") ?? "" }));
    const rows = first.map((one) => h("li", {}, h("div", { class: "mono" }, short(one.raw, 120)), h("div", { class: "quiet" }, short(one.error, 120))));
    const nodes = [h("p", {}, total === 0 ? "None that was not replayed yet." : `${counted(total, "letter")} not replayed yet${total > first.length ? `. The first ${first.length}:` : ":"}`), h("div", { class: "few", tabindex: "0", role: "region", "aria-label": "The first of them" }, h("ol", {}, rows))];
    return { count: total, nodes: total ? nodes : nodes.slice(0, 1) };
  } catch (error) {
    if (error.name !== "AbortError") say(`Not done. ${error.message}`, true);
    return null;
  }
}

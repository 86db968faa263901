// One dead letter: the message, why it failed each time, what its mapping makes of it, and its replay, edited or not.

import { path } from "../api.js";
import { confirmed, doing, trouble } from "../dialogs.js";
import { h, replace } from "../dom.js";
import { counted } from "../format.js";
import { fault, member, pretty } from "../jsontext.js";
import { crumbs, messageAt, queueAt, queueNav } from "../places.js";
import { button, facts, field, jsonView, table, time } from "../widgets.js";
import { lettersAt } from "./letters-many.js";

/** The page. */
export async function letter(context) {
  const { api, params: { space, queue, id }, say } = context;
  const asked = { tenant_id: space };
  const at = `${lettersAt(queue)}${path`/${id}`}`;
  const answer = await api.text(at, asked);
  const found = JSON.parse(answer);
  const inside = member(answer, "letter");
  const raw = member(inside, "originalMessage") ?? "null";
  const place = { ...context, at, asked, found, raw, origin: found.letter.originalQueue };
  const nodes = [
    queueNav(space, queue, "dead-letters"),
    about(place),
    h("h2", {}, "Message"), jsonView("Message", raw, say),
    h("h2", {}, "Attempts"), attempts(found.letter.errors),
    ...(found.headers ? [h("h2", {}, "Headers"), jsonView("Headers", member(answer, "headers"), say)] : []),
    ...kin("What it was before", "The same message was a dead letter before, and was replayed.", found.forerunners, place),
    ...kin("What became of it", "Messages made of it were given up in turn.", found.descendants, place),
    ...bench(place),
  ];
  return { title: `Dead letter ${id}`, crumbs: [...crumbs(space, queue), ["Dead letters", queueAt(space, queue, "dead-letters")]], nodes };
}

function about({ found, params: { space }, origin }) {
  const { letter: inner } = found;
  const replayed = inner.replayedAt === null || inner.replayedAt === undefined
    ? "not yet"
    : [time(inner.replayedAt), " as ", h("a", { class: "mono", href: messageAt(space, origin, inner.newMessageId) }, inner.newMessageId)];
  return h("div", {},
    h("p", { class: "answer" }, h("strong", {}, inner.reason), ": ", inner.lastError || "without an error"),
    facts([
      ["Came from", h("a", { href: queueAt(space, origin) }, origin)], ["Consumer", inner.consumer || "none had it"],
      ["Lies in", h("a", { href: queueAt(space, found.dead_letter_queue) }, found.dead_letter_queue)], ["Position", found.position],
      ["Was", h("span", { class: "mono" }, inner.originalMessageId)], ["Key", found.key], ["Type", found.type], ["Priority", found.priority],
      ["Attempts", inner.attempts], ["First tried", time(inner.firstSeenAt)], ["Last tried", time(inner.lastSeenAt)],
      ["Failed", time(inner.failedAt)], ["Replayed", replayed]]));
}

function attempts(errors) {
  const list = table({
    caption: "The last 100 attempts", key: (row) => `${row.attempt} ${row.at}`, empty: "It was never handed out.",
    columns: [
      { title: "Attempt", number: true, heading: true, cell: (row) => row.attempt }, { title: "Ended", cell: (row) => time(row.at) },
      { title: "Worker", cell: (row) => row.worker || "–" }, { title: "How", cell: (row) => row.ending },
      { title: "Error", cell: (row) => h("span", { class: "wrap" }, row.message || "–") }],
  });
  list.update(errors);
  return list.element;
}

function kin(title, told, rows, { params: { space } }) {
  if (!rows.length) return [];
  const list = table({
    caption: told, key: (row) => `${row.id} ${row.failed_at}`, empty: "",
    columns: [
      { title: "Id", heading: true, cell: (row) => row.id ? h("a", { class: "mono", href: queueAt(space, row.dead_letter_queue, "dead-letters") + path`/${row.id}` }, row.id) : "no dead letter any more" },
      { title: "Failed", cell: (row) => time(row.failed_at * 1000) }, { title: "Reason", cell: (row) => row.reason },
      { title: "Attempts", number: true, cell: (row) => row.attempts }, { title: "Error", cell: (row) => h("span", { class: "wrap" }, row.error || "–") }],
  });
  list.update(rows);
  return [h("h2", {}, title), list.element];
}

/** Where it is tried, edited and sent on its way again. */
function bench({ api, at, asked, found, raw, origin, params: { space, queue }, say, again, go }) {
  const done = found.letter.replayedAt !== null && found.letter.replayedAt !== undefined;
  const first = fault(raw) ? raw : pretty(raw);
  const data = h("textarea", { name: "message", spellcheck: "false", rows: "10" });
  data.value = first;
  const mapping = h("textarea", { name: "map_to", spellcheck: "false", rows: "3", placeholder: "command Order.Create { entity_id: order }" });
  const other = h("details", {}, h("summary", {}, "Try another mapping"),
    field("map_to", mapping, "As in a spec, after `map_to:`. Empty: the queue's own. A dry-run carries nothing out."));
  const wrong = h("div", { role: "alert" });
  const tried = h("div", { role: "status" });
  const edited = () => data.value !== first;
  const replay = button("Replay as it was", (event) => send(event), { class: "primary", disabled: done });
  const undo = button("Undo the changes", () => {
    data.value = first;
    looked();
    data.focus();
  }, { disabled: true });
  const dry = button("Dry-run", (event) => attempt(event));
  function looked() {
    const why = fault(data.value);
    if (why) data.setAttribute("aria-invalid", "true");
    else data.removeAttribute("aria-invalid");
    replace(wrong, why && edited() ? h("p", {}, why) : null);
    replay.textContent = edited() ? "Replay with these changes" : "Replay as it was";
    replay.disabled = done || (edited() && why !== null);
    dry.disabled = edited() && why !== null;
    undo.disabled = !edited();
  }
  data.addEventListener("input", looked);
  // What was not touched is not sent: it stays as it is, byte for byte.
  const message = () => (edited() ? [`"message":${data.value}`] : []);
  async function attempt(event) {
    replace(tried);
    await doing(event, say, async () => {
      const wanted = mapping.value.trim();
      const map = wanted ? [`"map_to":${wanted.startsWith("{") && !fault(wanted) ? wanted : JSON.stringify(wanted)}`] : [];
      const answer = await api.postText(`${at}/dry-run`, `{${[...message(), ...map].join(",")}}`, asked).catch((error) => {
        if (!error.message.startsWith("map_to")) throw error;
        other.open = true; // it is the mapping that will not do, or there is none
        mapping.focus();
        throw error;
      });
      replace(tried, outcome(answer, say));
      return JSON.parse(answer).ok ? "It would work." : "It would fail.";
    });
    looked();
  }
  async function send(event) {
    await doing(event, say, async () => {
      const answer = await api.post(`${at}/replay`, `{${message().join(",")}}`, asked);
      await again();
      return answer.already ? `It was replayed before, as ${answer.new_message_id}.` : `Replayed as ${answer.new_message_id}.`;
    });
  }
  const remove = button("Delete …", async (event) => {
    const sure = await confirmed({ title: "Delete this dead letter?", text: "It cannot be brought back. A message that was made of it stays.", action: "Delete for good", danger: true });
    if (!sure) return;
    await doing({ currentTarget: event.target }, say, async () => {
      await api.delete(at, asked);
      go(queueAt(space, queue, "dead-letters"));
      return "Deleted.";
    });
  }, { class: "danger" });
  return [
    h("h2", {}, "Try, edit and replay"),
    done && h("p", {}, "It was replayed, and is not replayed twice."),
    field("Message to send", data, `A replay makes a new message at the end of ${origin}, with attempts from 0.`), wrong,
    other, h("div", { class: "buttons" }, replay, dry, undo, remove), tried];
}

/** What a dry-run said. */
function outcome(answer, say) {
  const told = JSON.parse(answer);
  if (told.ok) {
    const where = told.command ? ["command ", h("strong", {}, told.command)] : told.queue ? ["queue ", h("strong", {}, told.queue)] : ["nothing: the queue has no mapping"];
    const input = member(answer, "input");
    return h("div", { class: "answer" }, h("p", {}, "It would become ", where, "."), input && jsonView("Input", input, say));
  }
  const list = table({
    caption: `It would fail: ${counted(told.errors.length, "error")}`, key: (row) => `${row.field} ${row.error}`, empty: told.error?.error ?? "",
    columns: [
      { title: "Field", heading: true, cell: (row) => row.field ?? "–" }, { title: "Expression", cell: (row) => h("code", { class: "wrap" }, row.expression ?? "–") },
      { title: "Found there", cell: (row) => h("span", { class: "wrap" }, row.found ?? "–") }, { title: "Error", cell: (row) => h("span", { class: "wrap" }, row.error) }],
  });
  list.update(told.errors);
  return list.element ?? trouble(new Error(told.error));
}

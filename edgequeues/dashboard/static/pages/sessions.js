// The sessions of a queue: which are held up, since when and by what, and what an operator can do about it.

import { dxn, path } from "../api.js";
import { confirmed, doing } from "../dialogs.js";
import { h } from "../dom.js";
import { count, counted } from "../format.js";
import { crumbs, messageAt, queueAt, queueNav } from "../places.js";
import { badge, button, field, pager, table, time } from "../widgets.js";

const SHOWN = 50;

/** The page. */
export async function sessions(context) {
  const { api, params: { space, queue }, query, go, again } = context;
  const address = path`/v1/${dxn(space, queue)}`;
  const page = { title: `Sessions of ${queue}`, crumbs: crumbs(space, queue) };
  const nav = queueNav(space, queue, "sessions");
  const [session, after] = [query.get("session"), query.get("after")];
  let found;
  try {
    found = await api.get(`${address}/sessions`, session ? { session } : { limit: SHOWN, after });
  } catch (error) {
    if (error.code !== "config_conflict") throw error;
    const lines = h("a", { href: queueAt(space, queue, "lines") }, "lines");
    return { ...page, nodes: [nav, h("p", {}, "This queue is none for sessions. What waits behind other messages of its key is shown under ", lines, ".")] };
  }
  const list = table({
    caption: "Sessions with messages that are not finished", key: (row) => row.session_id,
    empty: session ? "This session has nothing that is not finished." : "No session has anything that is not finished.",
    columns: columns(context, address),
  });
  list.update(found.sessions);
  const wanted = h("input", { type: "search", name: "session", value: session ?? "", autocomplete: "off", spellcheck: "false" });
  const form = h("form", { class: "tools", on: { submit: (event) => {
    event.preventDefault();
    go(queueAt(space, queue, "sessions", { session: wanted.value.trim() }));
  } } }, field("Session", wanted), h("button", { class: "primary" }, "Find"), button("Look again", again));
  const at = (id) => queueAt(space, queue, "sessions", { after: id });
  const pages = pager({ first: (after || session) && at(null), next: found.resume === null ? null : at(found.resume) });
  return { ...page, nodes: [nav, form, list.element, pages] };
}

function columns(context, address) {
  const { params: { space, queue } } = context;
  return [
    { title: "Session", heading: true, cell: (row) => row.session_id },
    { title: "Waiting", number: true, cell: (row) => count(row.depth) },
    { title: "Oldest", cell: (row) => time(row.oldest) },
    { title: "First message", cell: (row) => h("a", { class: "mono", href: messageAt(space, queue, row.head.id) }, row.head.id) },
    { title: "State", cell: (row) => [badge(row.head.state), row.head.due !== null && h("div", {}, "until ", time(row.head.due))] },
    { title: "Failures", number: true, cell: (row) => count(row.head.failures) },
    { title: "Blocked since", cell: (row) => time(row.head.blocked_since) },
    { title: "Last error", cell: (row) => h("span", { class: "wrap" }, row.head.last_error || "–") },
    { title: "Actions", cell: (row) => h("div", { class: "buttons" }, actions(context, address, row)) },
  ];
}

function actions({ api, say, again }, address, row) {
  const id = row.session_id;
  const post = async (verb) => {
    const told = await api.post(`${address}/sessions/${verb}`, { session_id: id });
    await again();
    return told;
  };
  const nothing = "Nothing to do: the session went on in the meantime.";
  const does = (label, question, work) => button(label, async (event) => {
    const pressed = event.currentTarget;
    if (question && !(await confirmed(question))) return;
    await doing({ currentTarget: pressed }, say, work);
  }, { "aria-label": `${label.replace(" …", "")} ${id}`, class: label.startsWith("Close") && "danger" });
  const first = row.head.state !== "leased";
  return [
    ["backoff", "scheduled"].includes(row.head.state) && does("Retry now", null, async () => ((await post("retry")).id ? `The first message of ${id} is ready.` : nothing)),
    first && does("Skip …", { title: "Skip the first message?", text: `The first message of session ${id} expires without an answer, and the next one comes.`, action: "Skip it", danger: true },
      async () => ((await post("skip")).id ? `The first message of ${id} was skipped.` : nothing)),
    does("Close …", { title: "Close this session?", text: `Everything in session ${id} that is not finished expires: ${counted(row.depth, "message")}. What comes afterwards goes on as usual.`, action: "Close it", danger: true },
      async () => `${counted((await post("close")).expired, "message")} of ${id} expired.`),
  ];
}

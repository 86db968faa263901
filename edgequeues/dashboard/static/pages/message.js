// One message: what is in it, where it stands with each consumer, why it is not delivered, and what was tried.

import { dxn, path } from "../api.js";
import { confirmed, doing } from "../dialogs.js";
import { h } from "../dom.js";
import { bytes, shell } from "../format.js";
import { member } from "../jsontext.js";
import { crumbs, messageAt, queueAt, queueNav } from "../places.js";
import { sentence } from "../telling.js";
import { badge, button, copyButton, facts, jsonView, table, time } from "../widgets.js";

const UNFINISHED = ["scheduled", "ready", "leased", "backoff"];

/** The page. */
export async function message(context) {
  const { params, api } = context;
  const [queue, entry] = [dxn(params.space, params.queue), dxn(params.space, params.queue, params.id)];
  const text = await api.text(path`/v1/${entry}`);
  const [one, data] = [JSON.parse(text), member(text, "data") ?? "null"];
  const [{ consumers }, search] = await Promise.all([
    api.get(path`/v1/${queue}/explain`, { id: params.id }),
    api.get(path`/v1/${queue}/search`, { id: params.id, limit: 1 }),
  ]);
  const standings = search.found[0]?.standings ?? [];
  const heads = await Promise.all(consumers.map((told) => head(api, queue, told)));

  const nodes = [
    queueNav(params.space, params.queue, "messages"),
    h("h2", {}, "Why is it not delivered?"),
    consumers.length ? consumers.map((told, index) => answer(context, queue, told, heads[index]))
      : h("p", { class: "answer" }, "No consumer works this queue, so nothing is handed out. It is read as a log."),
    h("h2", {}, "Data"), jsonView("Data of the message", data, context.say),
    one.headers && [h("h2", {}, "Headers"), facts(Object.entries(one.headers))],
    h("h2", {}, "Facts"), known(one, data),
    standings.length > 0 && [h("h2", {}, "Standing with each consumer"), standingTable(standings)],
    consumers.some((told) => told.history.length) && [h("h2", {}, "Attempts"), attempts(consumers)],
    h("h2", {}, "Actions"), actions(context, { queue, entry, text, data }),
  ];
  return { title: params.id, crumbs: crumbs(params.space, params.queue), nodes: nodes.flat(2) };
}

/** The first message of the line that this one waits in. Null: it waits behind none, or that has gone on since. */
async function head(api, queue, told) {
  if (told.why !== "behind") return null;
  const { found } = await api.get(path`/v1/${queue}/search`, { consumer: told.consumer, key: told.key, state: UNFINISHED, limit: 1 });
  const standing = found[0]?.standings[0];
  return standing ? { ...standing, id: found[0].id } : null;
}

function answer(context, queue, told, first) {
  const { params } = context;
  const open = ["scheduled", "waiting", "ready", "backoff"].includes(told.state);
  return h("div", { class: "answer" },
    h("strong", {}, `${told.consumer}: `), sentence(told, first, Date.now()),
    first && [" ", h("a", { href: messageAt(params.space, params.queue, first.id) }, "Go to that message")],
    ["scheduled", "backoff"].includes(told.state) && [" ", hurrying(context, queue, told)],
    open && [" ", skipping(context, queue, told)]);
}

function hurrying({ api, say, again, params }, queue, told) {
  return button(`Retry now for ${told.consumer}`, (event) => doing(event, say, async () => {
    await api.post(path`/v1/${queue}/hurry`, { id: params.id, consumer: told.consumer });
    await again();
    return `${params.id} is ready for ${told.consumer}.`;
  }));
}

function skipping({ api, say, go, params }, queue, told) {
  return button(`Skip for ${told.consumer}`, async (event) => {
    const pressed = { currentTarget: event.currentTarget };
    const yes = await confirmed({
      title: `Skip this message for ${told.consumer}?`,
      text: `It will not be handed out to ${told.consumer} any more, and becomes a dead letter where the consumer keeps those. What waits behind it goes on.`,
      action: "Skip it",
      danger: true,
    });
    if (!yes) return;
    await doing(pressed, say, async () => {
      await api.post(path`/v1/${queue}/skip`, { id: params.id, consumer: told.consumer });
      go(queueAt(params.space, params.queue, "messages")); // it may be gone from here
      return `${params.id} is skipped for ${told.consumer}.`;
    });
  }, { class: "danger" });
}

function known(one, data) {
  return facts([
    ["Id", h("span", { class: "mono" }, one.id)],
    ["Position", one.position],
    ["Version", h("span", { class: "mono" }, one.version)],
    ["Type", one.type],
    ["Key", one.key],
    ["Priority", one.priority],
    ["Size of the data", bytes(new TextEncoder().encode(data).length)],
    ["First appended", time(one.created)],
    ["Last appended", time(one.updated)],
    ["Expires", one.expires === undefined ? "never" : time(one.expires)],
  ].filter(([, value]) => value !== undefined));
}

function standingTable(standings) {
  const list = table({
    caption: "Standing",
    key: (row) => row.consumer,
    empty: "",
    columns: [
      { title: "Consumer", heading: true, cell: (row) => row.consumer },
      { title: "State", cell: (row) => badge(row.state) },
      { title: "Attempts", number: true, cell: (row) => row.attempts ?? "–" },
      { title: "Until", cell: (row) => time(row.due) },
      { title: "Worker", cell: (row) => row.worker ?? "–" },
      { title: "First seen", cell: (row) => time(row.first) },
      { title: "Last seen", cell: (row) => time(row.last) },
      { title: "Last error", cell: (row) => h("span", { class: "wrap" }, row.last_error ?? "–") },
    ],
  });
  list.update(standings);
  return list.element;
}

function attempts(consumers) {
  const rows = consumers.flatMap(({ consumer, history }) => history.map((one) => ({ consumer, ...one }))).reverse();
  const list = table({
    caption: "Attempts that were not acked, the newest first; up to 100 a consumer are kept",
    key: (row) => `${row.consumer}/${row.attempt}/${row.began}`,
    empty: "",
    columns: [
      { title: "Attempt", heading: true, cell: (row) => String(row.attempt) },
      { title: "Consumer", cell: (row) => row.consumer },
      { title: "Ended as", cell: (row) => row.ending },
      { title: "Worker", cell: (row) => row.worker ?? "–" },
      { title: "Began", cell: (row) => time(row.began) },
      { title: "Ended", cell: (row) => time(row.ended) },
      { title: "Error", cell: (row) => h("span", { class: "wrap" }, row.error ?? "–") },
    ],
  });
  list.update(rows);
  return list.element;
}

function actions({ api, say, go, params, session }, { queue, entry, text, data }) {
  const remove = button("Delete", async (event) => {
    const pressed = { currentTarget: event.currentTarget };
    const yes = await confirmed({
      title: "Delete this message?",
      text: "It is gone for good, for every consumer; nothing keeps a copy. Whoever works it now is told that nothing is left to be done.",
      action: "Delete it",
      danger: true,
    });
    if (!yes) return;
    await doing(pressed, say, async () => {
      const { deleted } = await api.delete(path`/v1/${entry}`);
      go(queueAt(params.space, params.queue, "messages"));
      return deleted ? `${params.id} is deleted.` : `${params.id} was gone already.`;
    });
  }, { class: "danger" });
  const who = session.needs_token || session.signed_in ? ` -H "Authorization: Bearer $EDGEQUEUES_TOKEN"` : "";
  const read = () => `curl${who} ${shell(location.origin + path`/v1/${entry}`)}`;
  const push = () => `curl${who} -H 'content-type: application/json' -d ${shell(`{"entries":[${repeated(text, data)}]}`)} ${shell(location.origin + path`/v1/${queue}/push`)}`;
  return h("div", { class: "buttons" }, copyButton("Copy as curl that reads it", read, say),
    copyButton("Copy as curl that pushes it again", push, say), remove);
}

/** The message as a new one, with an id of its own: what it holds as it was, and what it was given. */
function repeated(text, data) {
  const kept = ["type", "key", "priority", "headers"]
    .map((name) => [name, member(text, name)])
    .filter(([, value]) => value !== null && value !== "null")
    .map(([name, value]) => `,"${name}":${value}`);
  return `{"id":null,"data":${data}${kept.join("")}}`;
}

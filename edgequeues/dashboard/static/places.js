// Addresses within the dashboard, and the ways from a space or a queue to what belongs to it.

import { path, query } from "./api.js";
import { h } from "./dom.js";

/** Of a space. @param {string} space @param {string} [part] as "audit" @param {Record<string, unknown>} [asked] */
export const spaceAt = (space, part = "", asked = {}) =>
  path`#/spaces/${space}` + (part && `/${part}`) + query(asked);

/** Of a queue. @param {string} space @param {string} queue @param {string} [part] as "messages" @param {Record<string, unknown>} [asked] */
export const queueAt = (space, queue, part = "", asked = {}) =>
  path`#/spaces/${space}/queues/${queue}` + (part && `/${part}`) + query(asked);

/** Of a message, or an entry. @param {string} space @param {string} queue @param {string} id */
export const messageAt = (space, queue, id) => queueAt(space, queue, "messages") + path`/${id}`;

// A page about a space or a queue is added here and to the routes of app.js.
const OF_SPACE = [["", "Queues"], ["schedules", "Schedules"], ["entities", "Entities"], ["specs", "Specs"], ["audit", "Audit log"]];
const OF_QUEUE = [["", "Overview"], ["messages", "Messages"], ["dead-letters", "Dead letters"], ["lines", "Lines"], ["sessions", "Sessions"]];

/** The ways within a space. @param {string} space @param {string} current the part that is shown */
export const spaceNav = (space, current) =>
  tabs("Space", OF_SPACE, current, (part) => spaceAt(space, part));

/** The ways within a queue. @param {string} space @param {string} queue @param {string} current */
export const queueNav = (space, queue, current) =>
  tabs("Queue", OF_QUEUE, current, (part) => queueAt(space, queue, part));

/** Crumbs down to a space, or to a queue. @param {string} [space] @param {string} [queue] @returns {[string, string][]} */
export function crumbs(space, queue) {
  const found = [["Spaces", "#/spaces"]];
  if (space !== undefined) found.push([space, spaceAt(space)]);
  if (queue !== undefined) found.push([queue, queueAt(space, queue)]);
  return found;
}

function tabs(label, list, current, at) {
  return h("nav", { class: "tabs", "aria-label": label }, list.map(([part, title]) =>
    h("a", { href: at(part), "aria-current": part === current && "page" }, title)));
}

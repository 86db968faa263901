// What keys there are, and what the states mean.

import { h } from "../dom.js";
import { badge, facts } from "../widgets.js";

const KEYS = [
  ["/", "to the filter or the search of the page"],
  ["g", "to the spaces"],
  ["?", "to this page"],
  ["Esc", "closes a question without doing anything"],
];
const STATES = [
  ["scheduled", "It waits for its time."],
  ["waiting", "It waits behind others of its line."],
  ["ready", "The next pull may get it."],
  ["leased", "A worker has it, until its lease ends."],
  ["backoff", "An attempt failed; it waits for the next one."],
  ["finished", "Nothing is left to be done, and the entry is kept."],
  ["none", "No consumer has been given it, as in a log that nobody works."],
];

/** The page. */
export function help() {
  const nodes = [
    h("p", {}, "Looking changes nothing: until a button is pressed, no message is leased, counted or moved."),
    h("h2", {}, "Keys"),
    facts(KEYS.map(([key, what]) => [h("kbd", {}, key), what])),
    h("h2", {}, "States of a message"),
    facts(STATES.map(([state, what]) => [badge(state), what])),
  ];
  return { title: "Help", crumbs: [["Spaces", "#/spaces"]], nodes };
}

// JSON as text: parts of it, and the same with line breaks, without a number or an escape being read and written
// anew. A browser's JSON.parse makes 12345678901234567890 another number; what a message holds must be shown as it is.

const TOKEN = /\s*("[^"\\]*(?:\\.[^"\\]*)*"|[{}[\],:]|[^\s{}[\],:"]+)/gy;

function* tokens(text) {
  const pattern = new RegExp(TOKEN);
  for (let found = pattern.exec(text); found; found = pattern.exec(text)) {
    yield { token: found[1], start: pattern.lastIndex - found[1].length, end: pattern.lastIndex };
  }
}

/** Where the parts of the outermost object or list begin and end: [[name or null, start, end]]. */
function parts(text) {
  const found = [];
  let depth = 0;
  let name = null;
  let start = -1;
  let last = 0;
  const close = () => {
    if (start >= 0) found.push([name, start, last]);
    [name, start] = [null, -1];
  };
  for (const { token, start: at, end } of tokens(text)) {
    if (token === "}" || token === "]") depth -= 1;
    if (depth === 0 && (token === "}" || token === "]")) close();
    else if (depth === 1 && token === ",") close();
    else if (depth === 1 && token === ":") {
      name = JSON.parse(text.slice(start, last));
      start = -1;
    } else if (depth >= 1 && start < 0) start = at;
    if (token === "{" || token === "[") depth += 1;
    last = end;
  }
  return found;
}

/**
 * The text of one member of an object; null where there is none.
 * @param {string} text valid JSON @param {string} name
 */
export function member(text, name) {
  const found = parts(text).find(([one]) => one === name);
  return found ? text.slice(found[1], found[2]) : null;
}

/** The texts of a list's elements. @param {string} text valid JSON, a list */
export const elements = (text) => parts(text).map(([, start, end]) => text.slice(start, end));

/**
 * Objects of a list within an answer, each with the text of its data as `raw`.
 * @param {string} answer @param {string} list the list's name
 */
export function withRaw(answer, list) {
  return elements(member(answer, list) ?? "[]").map((one) => ({ ...JSON.parse(one), raw: member(one, "data") ?? "null" }));
}

/** The same JSON, a part a line, indented by two blanks. @param {string} text valid JSON */
export function pretty(text) {
  const out = [];
  let indent = "\n";
  let opened = false; // an empty object or list stays in one line
  for (const { token } of tokens(text)) {
    if (token === "}" || token === "]") {
      indent = indent.slice(0, -2);
      if (!opened) out.push(indent);
      out.push(token);
      opened = false;
      continue;
    }
    if (opened) out.push(indent);
    opened = token === "{" || token === "[";
    if (opened) indent += "  ";
    out.push(token === ":" ? ": " : token);
    if (token === ",") out.push(indent);
  }
  return out.join("");
}

/**
 * What is wrong with a text that should be JSON: null if nothing is.
 * @param {string} text
 */
export function fault(text) {
  if (!text.trim()) return "Nothing is written here. JSON is wanted, such as {\"n\": 1} or \"a text in quotes\".";
  try {
    JSON.parse(text);
    return null;
  } catch (error) {
    return `This is no JSON: ${error.message}.`;
  }
}

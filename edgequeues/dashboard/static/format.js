// Numbers and times as people read them. Everything here is a plain function of its arguments.

const WHOLE = new Intl.NumberFormat("en");
const STEPS = [["d", 86_400], ["h", 3_600], ["min", 60], ["s", 1]];

/** 12,345. @param {number} n */
export const count = (n) => WHOLE.format(n);

/** "1 message", "2 messages". @param {number} n @param {string} one @param {string} [many] */
export const counted = (n, one, many = `${one}s`) => `${count(n)} ${n === 1 ? one : many}`;

/** A span of seconds in its two largest units: "2 h 5 min"; "–" for none. @param {number | null} seconds */
export function span(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < 1) return seconds > 0 ? `${Math.round(seconds * 1000)} ms` : "0 s";
  let left = Math.round(seconds);
  const parts = [];
  for (const [unit, size] of STEPS) {
    const n = Math.floor(left / size);
    left -= n * size;
    if (n) parts.push(`${n} ${unit}`);
    if (parts.length === 2 || (parts.length === 1 && !n)) break;
  }
  return parts.join(" ") || "0 s";
}

/** The same of milliseconds. @param {number | null} ms */
export const spanMs = (ms) => span(ms === null || ms === undefined ? null : ms / 1000);

/** "3 min ago", "in 20 s", "now". @param {number} at unix ms @param {number} now unix ms */
export function relative(at, now) {
  const seconds = Math.round((at - now) / 1000);
  if (seconds === 0) return "now";
  const [, size] = STEPS.find(([, step]) => Math.abs(seconds) >= step);
  const rounded = Math.floor(Math.abs(seconds) / size) * size;
  return seconds < 0 ? `${span(rounded)} ago` : `in ${span(rounded)}`;
}

/** A local time of day, with the day where it is another one. @param {number} at unix ms @param {number} now */
export function clock(at, now) {
  const date = new Date(at);
  const two = (n) => String(n).padStart(2, "0");
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  const time = `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
  return date.toDateString() === new Date(now).toDateString() ? time : `${day} ${time}`;
}

/** 1.4 KiB. @param {number} n */
export function bytes(n) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let at = 0;
  while (n >= 1024 && at < units.length - 1) [n, at] = [n / 1024, at + 1];
  return `${at ? n.toFixed(1) : n} ${units[at]}`;
}

/** The mean of numbers per second, over as many seconds: "0", "0.25/s", "12/s". @param {number[]} perSecond */
export function rate(perSecond) {
  const mean = perSecond.reduce((sum, n) => sum + n, 0) / (perSecond.length || 1);
  if (!mean) return "0";
  return `${mean >= 10 ? count(Math.round(mean)) : mean.toFixed(mean >= 1 ? 1 : 2)}/s`;
}

/** The first characters of a text, in one line. @param {string} text @param {number} [length] */
export function short(text, length = 120) {
  const line = text.slice(0, length * 4).replace(/\s+/g, " ");
  return line.length > length || text.length > length * 4 ? `${line.slice(0, length - 1)}…` : line;
}

/** snake_case as words: "Total retried". @param {string} name */
export const words = (name) => (name.charAt(0).toUpperCase() + name.slice(1)).replaceAll("_", " ");

/** A text for a POSIX shell, whatever is in it. @param {string} text */
export const shell = (text) => `'${text.replaceAll("'", `'\\''`)}'`;

// Follows a stream of server-sent events for as long as the page that wants it is there and seen.

const WAIT_MS = 1_000;
const WAIT_MS_MAX = 30_000;

/**
 * Listen to a stream. Each event is the whole of what it tells, so a new connection misses nothing.
 * @param {string} address
 * @param {Record<string, (value: any) => void>} listeners by event; the data is parsed
 * @param {{signal: AbortSignal, onState: (state: "connecting" | "live" | "waiting") => void, onRefused: () => Promise<void>}} options
 *   signal: ends it. onRefused: the server closed the stream; it looks whether that is because nobody is signed in.
 */
export function follow(address, listeners, { signal, onState, onRefused }) {
  let source = null;
  let timer = 0;
  let waitMs = WAIT_MS;

  function close() {
    clearTimeout(timer);
    source?.close();
    source = null;
  }

  function open() {
    close();
    onState("connecting");
    source = new EventSource(address);
    source.onopen = () => {
      waitMs = WAIT_MS;
      onState("live");
    };
    source.onerror = () => {
      // CLOSED: an answer other than 200. Else the browser connects again by itself.
      onState("waiting");
      if (source?.readyState !== EventSource.CLOSED) return;
      close();
      onRefused().catch(() => {}); // what is wrong shows itself by the state, and again at the next try
      timer = setTimeout(open, waitMs);
      waitMs = Math.min(waitMs * 2, WAIT_MS_MAX);
    };
    for (const [event, listener] of Object.entries(listeners)) {
      source.addEventListener(event, (one) => listener(one.data ? JSON.parse(one.data) : null));
    }
  }

  // A browser has six connections to a server: a tab that nobody looks at must not hold one.
  function seen() {
    if (document.hidden) {
      close();
      onState("waiting");
    } else if (source === null) open();
  }

  if (signal.aborted) return;
  document.addEventListener("visibilitychange", seen, { signal });
  signal.addEventListener("abort", close, { once: true });
  if (!document.hidden) open();
}

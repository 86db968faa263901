// A queue as a Durable Object: the tables of edgequeues in its SQLite, appended to, read, pushed, pulled and acked
// over HTTP. No answer leaves before what it says is on disk: that is the output gate's doing.
import { DurableObject } from "cloudflare:workers";

const ENTRY =
  "INSERT INTO queue_entries (version, object_id, queue_id, type_dxn, created_ts, updated_ts, size, data)" +
  " VALUES (?, ?, 'q', ?, ?, ?, ?, ?) ON CONFLICT (queue_id, object_id) DO NOTHING RETURNING id";
const PAGE = "SELECT id, version, created_ts, data FROM queue_entries WHERE queue_id = 'q' AND id > ? ORDER BY id LIMIT ?";
const DELIVERY =
  "INSERT INTO deliveries (consumer_id, entry_id, state, rank, turn, size, attempts, serial, open)" +
  " VALUES (1, ?, 'ready', 5, ?, ?, 0, 0, 0)";
const READY =
  "SELECT d.entry_id AS id, d.serial + 1 AS serial, e.data AS data FROM deliveries d" +
  " JOIN queue_entries e ON e.id = d.entry_id" +
  " WHERE d.consumer_id = 1 AND d.state = 'ready' ORDER BY d.rank, d.turn LIMIT ?";
const LEASE =
  "UPDATE deliveries SET state = 'leased', due_ts = ?, attempts = attempts + 1, serial = ?, open = 1, last_ts = ?" +
  " WHERE consumer_id = 1 AND entry_id = ?";
const ACK = "DELETE FROM deliveries WHERE consumer_id = 1 AND entry_id = ? AND serial = ? AND state = 'leased'";
const REMOVE = "DELETE FROM queue_entries WHERE id = ?";

export class Queue extends DurableObject {
  constructor(ctx, env) {
    super(ctx, env);
    this.sql = ctx.storage.sql;
    this.waiting = [];
    if (this.sql.exec("SELECT 1 FROM sqlite_master WHERE name = 'queue_entries'").toArray().length === 0) {
      this.sql.exec(env.DDL);
    }
  }

  async fetch(request) {
    const url = new URL(request.url);
    switch (url.pathname.split("/")[2]) {
      case "append":
        return answer({ entries: this.insert((await request.json()).entries) });
      case "read":
        return this.read(Number(url.searchParams.get("after")), Number(url.searchParams.get("limit")));
      case "push":
        return answer({ entries: this.push((await request.json()).entries) });
      case "pull":
        return this.pull(await request.json());
      case "ack":
        return answer({ acked: this.ack((await request.json()).leases) });
    }
    return new Response("no such verb", { status: 404 });
  }

  insert(entries) {
    const now = Date.now();
    return entries.map(({ data }) => {
      const text = JSON.stringify(data);
      const version = `${now.toString(16)}@0`;
      const [row] = this.sql.exec(ENTRY, version, data.id, data["@type"], now, now, text.length, text);
      return { id: data.id, version, position: row?.id };
    });
  }

  read(after, limit) {
    const rows = this.sql.exec(PAGE, after, limit).toArray();
    const entries = rows.map((row) => `{"id":${row.id},"version":"${row.version}","createdAt":${row.created_ts},"data":${row.data}}`);
    return answer(`{"entries":[${entries.join(",")}],"next":${rows.at(-1)?.id ?? after}}`);
  }

  push(entries) {
    const made = this.insert(entries);
    for (const { position } of made) {
      this.sql.exec(DELIVERY, position, position, 200);
    }
    this.waiting.shift()?.();
    return made;
  }

  async pull({ batch, lease_ms, wait }) {
    let rows = this.sql.exec(READY, batch).toArray();
    while (wait && rows.length === 0) {
      await new Promise((wake) => this.waiting.push(wake));
      rows = this.sql.exec(READY, batch).toArray();
    }
    const now = Date.now();
    for (const { id, serial } of rows) {
      this.sql.exec(LEASE, now + lease_ms, serial, now, id);
    }
    const messages = rows.map(({ id, serial, data }) => `{"lease":"${id}.${serial}","data":${data}}`);
    return answer(`{"messages":[${messages.join(",")}]}`);
  }

  ack(leases) {
    let acked = 0;
    for (const lease of leases) {
      const [id, serial] = lease.split(".").map(Number);
      acked += this.sql.exec(ACK, id, serial).rowsWritten > 0 ? 1 : 0;
      this.sql.exec(REMOVE, id);
    }
    return acked;
  }
}

function answer(value) {
  const body = typeof value === "string" ? value : JSON.stringify(value);
  return new Response(body, { headers: { "content-type": "application/json" } });
}

export default {
  fetch(request, env) {
    const name = new URL(request.url).pathname.split("/")[1];
    return env.QUEUE.get(env.QUEUE.idFromName(name)).fetch(request);
  },
};

// Drives the real JavaScript SDK through a queue's life: consumer.mjs URL ACCOUNT
// Prints what it saw as JSON.
import Cloudflare from 'cloudflare';

const [url, account_id] = process.argv.slice(2);
const client = new Cloudflare({ apiToken: 'test-token', baseURL: `${url}/client/v4`, maxRetries: 0 });
const { queues } = client;

const { queue_id } = await queues.create({ account_id, queue_name: 'from-js' });
await queues.consumers.create(queue_id, { account_id, type: 'http_pull' });
await queues.messages.push(queue_id, { account_id, body: { n: 1 }, content_type: 'json' });
const { messages } = await queues.messages.pull(queue_id, { account_id, batch_size: 10 });
const body = JSON.parse(Buffer.from(messages[0].body, 'base64').toString());
const acked = await queues.messages.ack(queue_id, {
  account_id,
  acks: messages.map(({ lease_id }) => ({ lease_id })),
});
let paused = '';
await queues.edit(queue_id, { account_id, settings: { delivery_paused: true } });
try {
  await queues.messages.pull(queue_id, { account_id });
} catch (error) {
  paused = error.message;
}
const names = [];
for await (const queue of queues.list({ account_id })) names.push(queue.queue_name);
await queues.delete(queue_id, { account_id });
console.log(JSON.stringify({ body, acked: acked.ackCount, names, paused: paused.includes('queue_delivery_paused') }));

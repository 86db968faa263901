// Keeps the real EdgeClient connected for a while: messenger.mjs URL SECONDS
// Prints {"probes", "connections", "connected"}: how often it asked, how often that went well, and how it ended.
import { EdgeClient, createEphemeralEdgeIdentity } from '@dxos/edge-client';
import { EdgeStatus } from '@dxos/protocols/proto/dxos/client/services';

const [url, seconds] = process.argv.slice(2);
const print = console.log;
console.log = console.warn = console.error = () => {}; // the client warns of every server without a challenge

let probes = 0; // one goes before every attempt to connect
const { fetch } = globalThis;
globalThis.fetch = (...args) => {
  probes++;
  return fetch(...args);
};

let connections = 0;
const client = new EdgeClient(await createEphemeralEdgeIdentity(), { socketEndpoint: url });
client.onReconnected(() => connections++);
await client.open();
await new Promise((resolve) => setTimeout(resolve, Number(seconds) * 1000));
print(JSON.stringify({ probes, connections, connected: client.status === EdgeStatus.CONNECTED }));
process.exit(0);

// Reads one queue with the real ECHO client: reader.mjs URL SPACE_ID QUEUE_ID
// Prints {"names": [...], "error": null or its message}; one bad object would leave no name at all.
import { Schema } from 'effect';
import { Type } from '@dxos/echo';
import { EchoClient, QueueServiceImpl } from '@dxos/echo-db';
import { EdgeHttpClient } from '@dxos/edge-client';
import { DXN } from '@dxos/keys';

const [url, spaceId, queueId] = process.argv.slice(2);

const Note = Schema.Struct({ name: Schema.String }).pipe(
  Type.Obj({ typename: 'example.com/type/Note', version: '0.1.0' }),
);
const echo = new EchoClient();
echo.connectToService({ queueService: new QueueServiceImpl(new EdgeHttpClient(url)) });
echo.graph.schemaRegistry.addSchema([Note]);

const queue = echo.constructQueueFactory(spaceId).get(DXN.fromQueue('data', spaceId, queueId));
await queue.refresh();
console.log(JSON.stringify({ names: queue.objects.map((o) => o.name), error: queue.error?.message ?? null }));
process.exit(0);

// An ordinary producer: nothing in it knows what its binding is bound to.
export default {
  async fetch(request, env) {
    if (new URL(request.url).pathname === '/metrics') {
      return Response.json(await env.JOBS.metrics());
    }
    const order = { path: new URL(request.url).pathname };
    await env.JOBS.send(order);
    await env.JOBS.sendBatch([
      { body: 'as text', contentType: 'text' },
      { body: new Uint8Array([0, 255]), contentType: 'bytes' },
      { body: { later: true }, delaySeconds: 5 },
    ]);
    return Response.json(order);
  },
};

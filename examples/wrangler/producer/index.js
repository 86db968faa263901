// An ordinary producer: nothing in it knows what its binding is bound to.
export default {
  async fetch(request, env) {
    const order = { path: new URL(request.url).pathname, at: Date.now() };
    await env.JOBS.send(order);
    await env.JOBS.sendBatch([{ body: 'as text', contentType: 'text' }, { body: { later: true }, delaySeconds: 5 }]);
    return Response.json(order);
  },
};

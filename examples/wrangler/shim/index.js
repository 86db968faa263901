// Stands in for a queue binding under `wrangler dev`: what a Worker sends goes to an edgequeues server over the
// Cloudflare API, and `send()` resolves once the server has it on disk.
import { WorkerEntrypoint } from 'cloudflare:workers';

const base64 = (bytes) => btoa(Array.from(new Uint8Array(bytes), (byte) => String.fromCharCode(byte)).join(''));

const message = ({ body, contentType = 'json', delaySeconds }) => {
  if (contentType === 'v8') {
    throw new TypeError('v8 needs the real binding; send json, text or bytes');
  }
  return {
    body: contentType === 'bytes' ? base64(body.buffer ?? body) : body,
    content_type: contentType,
    ...(delaySeconds === undefined ? {} : { delay_seconds: delaySeconds }),
  };
};

export default class extends WorkerEntrypoint {
  async send(body, options = {}) {
    return this.#post('messages', message({ ...options, body }));
  }

  async sendBatch(messages, { delaySeconds } = {}) {
    return this.#post('messages/batch', {
      messages: Array.from(messages, message),
      ...(delaySeconds === undefined ? {} : { delay_seconds: delaySeconds }),
    });
  }

  async #post(path, body) {
    const queues = `${this.env.EDGEQUEUES}/client/v4/accounts/${this.env.ACCOUNT}/queues`;
    const [queue] = await this.#call(`${queues}?name=${this.env.QUEUE}`);
    if (!queue) {
      throw new Error(`there is no queue ${this.env.QUEUE}: create it with \`wrangler queues create\``);
    }
    return this.#call(`${queues}/${queue.queue_id}/${path}`, body);
  }

  async #call(url, body) {
    const headers = { authorization: `Bearer ${this.env.TOKEN}`, 'content-type': 'application/json' };
    const response = await fetch(url, body ? { method: 'POST', headers, body: JSON.stringify(body) } : { headers });
    const answer = await response.json();
    if (!answer.success) {
      const [error] = answer.errors;
      throw new Error(`${error.message} [code: ${error.code}]`);
    }
    return answer.result;
  }
}

// What a handler is given and gives, for TypeScript. The daemon's own shapes are the structs of
// edgequeues/events/event.py and edgequeues/daemon/contract.py: change these with them.

export type Source = "email" | "sms";

export interface BlobRef {
  bucket: string;
  key: string;
  presignedGetUrl?: string;
  expiresAt?: string;
}

export interface Attachment {
  id: string;
  filename: string;
  contentType: string;
  size: number;
  r2: BlobRef;
}

export interface Participants {
  fromEmail?: string;
  fromName?: string;
  toEmail?: string;
  fromPhoneE164?: string;
  toPhoneE164?: string;
}

export interface Content {
  subject?: string;
  text?: string;
  htmlR2?: BlobRef;
  attachments?: Attachment[];
}

export interface Correlation {
  threadKey: string;
  messageId?: string;
  inReplyTo?: string;
  references?: string;
  twilioMessageSid?: string;
}

export interface ReplyTo {
  channel: Source;
  toEmail?: string[];
  toPhoneE164?: string;
}

export interface SwitchboardEvent {
  id: string;
  source: Source;
  receivedAt: string;
  priority?: "low" | "normal" | "high";
  tags?: string[];
  participants: Participants;
  content: Content;
  correlation: Correlation;
  reply?: ReplyTo;
}

export interface EmailReply {
  channel: "email";
  to?: string[];
  subject?: string;
  text?: string;
  html?: string;
}

export interface SmsReply {
  channel: "sms";
  body: string;
  to?: string;
  mediaUrls?: string[];
}

export interface Artifact {
  kind: string;
  r2?: BlobRef;
  note?: string;
}

export interface Result {
  reply?: EmailReply | SmsReply;
  artifacts?: Artifact[];
}

type Log = (message: string, fields?: Record<string, unknown>) => void;

export interface Context {
  /** From 1: how often the event was handed out. */
  attempt: number;
  /** How long the handler may take. */
  budgetMs: number;
  /** Aborted when the time is up. */
  signal: AbortSignal;
  now(): Date;
  /** A link to an object that is good now. */
  url(ref: BlobRef): Promise<string>;
  /** An object, or its bytes from `start` to before `end`. */
  download(ref: BlobRef, range?: { start?: number; end?: number }): Promise<Response>;
  sendEmail(reply: Omit<EmailReply, "channel">): Promise<null>;
  sendSms(reply: Omit<SmsReply, "channel">): Promise<null>;
  logger: { debug: Log; info: Log; warning: Log; error: Log };
  metrics: {
    count(name: string, value?: number, labels?: Record<string, string>): void;
    observe(name: string, value: number, labels?: Record<string, string>): void;
  };
}

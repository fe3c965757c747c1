/**
 * What one may do with the credentials of a worker, or of a gateway, at a NATS server of a cluster: tries what must be refused.
 *
 * Standard input: JSON with `url`, `ca` (a file), `id` and `nkeys` of the worker, `other` (another worker's id), `gateway` (an nkey).
 * Prints what was answered although it must not be, and whether what must be answered was, as JSON.
 */
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { Bus } from "../../../shared/bus/nats.ts";
import { publicNkey } from "../../../shared/bus/nkey.ts";
import { gatewayInbox, workerInbox } from "../../../shared/bus/permissions.ts";
import { bucketStream, bucketSubject, buckets, callSubject, entryKey, memberBucket, storeCalls, storePrefix, subjects } from "../../../shared/bus/subjects.ts";
import { createLogger } from "../../../shared/util/log.ts";

interface Given {
  readonly url: string;
  readonly ca: string;
  readonly id: string;
  readonly nkeys: readonly [string, string];
  readonly other: string;
  readonly gateway: string;
}

const askMs = 1_500;
const log = createLogger("test", "silent");
const { url, ca, id, nkeys, other, gateway } = JSON.parse(await text(process.stdin)) as Given;
const open = (nkey: string, inbox: string): Promise<Bus> => Bus.connect(url, "hostile", log, { nkey, ca, inbox: subjects.inbox(inbox) });
const calls = await open(nkeys[0], workerInbox(id));
const storage = await open(nkeys[1], workerInbox(id));
const main = await open(gateway, gatewayInbox(publicNkey(gateway)));

/** The answer, unless there is none or it is a refusal. */
async function answered({ connection }: Bus, subject: string, payload = ""): Promise<string | undefined> {
  const answer = await connection.request(subject, payload, { timeout: askMs }).catch(() => undefined);
  return !answer || answer.headers?.code || answer.string().includes('"error"') ? undefined : `${subject}: ${answer.string().slice(0, 100)}`;
}

const api = (call: string): string => `${storeCalls.prefix}.${call}`;
const stored = [
  bucketSubject(buckets.keys, "x"),
  bucketSubject(buckets.sandboxes, entryKey(other, "x")),
  bucketSubject(buckets.workers, other),
  bucketSubject(memberBucket, "x"),
];
const streams = ([buckets.keys, buckets.accounts, buckets.sessions, memberBucket] as const).map(bucketStream);
const asked = [
  ...stored,
  ...streams.flatMap((stream) =>
    [storeCalls.info(stream), `STREAM.MSG.GET.${stream}`, `STREAM.PURGE.${stream}`, `STREAM.DELETE.${stream}`, `CONSUMER.CREATE.${stream}`].map(api),
  ),
  ...[
    storeCalls.getLast(bucketStream(buckets.workers), bucketSubject(buckets.workers, other)),
    `STREAM.DELETE.${bucketStream(buckets.workers)}`,
    "INFO",
    "SERVER.REMOVE",
  ].map(api),
  callSubject("sessions", other),
  "$SYS.REQ.SERVER.PING",
  "$SYS.REQ.USER.INFO",
];
// As they are, and as the storage knows them.
const tried = asked.flatMap((subject) => [subject, `${storePrefix}.${subject.replace(`${storeCalls.prefix}.`, "")}`]);
const heard: string[] = [];
for (const bus of [calls, storage]) {
  for (const subject of [">", "sandgate.>", callSubject("sessions", other), "_INBOX.>", "$SYS.>"])
    bus.connection.subscribe(subject, { callback: (error, message) => void (error ?? heard.push(message.subject)) });
}
const breaches = (await Promise.all([calls, storage].flatMap((bus) => tried.map((subject) => answered(bus, subject, "{}"))))).filter(
  (one) => one !== undefined,
);
// A gateway does not decide who the machines are, nor remove what is stored.
const refusedGateways = [api(storeCalls.info(bucketStream(memberBucket))), "$JS.API.SERVER.REMOVE", "$SYS.REQ.SERVER.PING.JSZ"];
for (const subject of [...refusedGateways, ...streams.flatMap((stream) => [`STREAM.PURGE.${stream}`, `STREAM.DELETE.${stream}`].map(api))]) {
  const answer = await answered(main, subject, JSON.stringify({ peer: "nobody" }));
  if (answer) breaches.push(`gateway: ${answer}`);
}
await sleep(askMs);
const own = storeCalls.getLast(bucketStream(buckets.workers), bucketSubject(buckets.workers, id));
const allowed =
  (await answered(storage, `${storePrefix}.${own}`)) !== undefined && (await answered(main, api(storeCalls.info(bucketStream(buckets.keys))))) !== undefined;
console.log(JSON.stringify({ breaches, heard, allowed, tried: tried.length * 2 }));
process.exit(0);

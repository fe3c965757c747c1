/** An attacker who has taken over a part: connections with its real credentials, used in ways that its program would not. */
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Bus } from "../../shared/bus/nats.ts";
import { publicNkey } from "../../shared/bus/nkey.ts";
import { gatewayInbox, workerInbox } from "../../shared/bus/permissions.ts";
import { subjects } from "../../shared/bus/subjects.ts";
import { secretsOf } from "../../systemd/supervisor/bus-identities.ts";
import { connectBus } from "./bus.ts";

const secretForm = /^worker-(.+)\.nk$/;
/** The folder of the secrets of an installation. */
const secretsAt = (natsUrl: string): string => dirname(new URL(natsUrl).searchParams.get("nkeyFile") ?? "");

class Hostile implements AsyncDisposable {
  readonly all: readonly Bus[];

  protected constructor(...all: readonly Bus[]) {
    this.all = all;
  }

  /** The messages that arrive on a subject during `meanwhile`, on each connection that may subscribe to it. */
  async overhears(subject: string, meanwhile: () => Promise<void>): Promise<string[]> {
    const heard: string[] = [];
    const listening = this.all.map(({ connection }) =>
      connection.subscribe(subject, { callback: (error, message) => void (error ?? heard.push(message.subject)) }),
    );
    await this.flush();
    await meanwhile();
    await this.flush();
    for (const one of listening) one.unsubscribe();
    return heard;
  }

  /** Publishes on all connections. When this resolves, the server has accepted or refused the message. */
  async says(subject: string, payload: string, reply?: string): Promise<void> {
    for (const { connection } of this.all) connection.publish(subject, payload, reply ? { reply } : {});
    await this.flush();
  }

  /** The answers to a request, without refusals. */
  async learns(subject: string, payload = ""): Promise<string[]> {
    const answers = await Promise.all(this.all.map(({ connection }) => connection.request(subject, payload, { timeout: 1_000 }).catch(() => undefined)));
    return answers.flatMap((answer) => (answer && !answer.string().includes('"error"') && !answer.headers?.code ? [answer.string()] : []));
  }

  async flush(): Promise<void> {
    for (const { connection } of this.all) await connection.flush();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.all.map((bus) => bus.close()));
  }
}

export class HostileWorker extends Hostile {
  readonly id: string;
  readonly calls: Bus;
  readonly storage: Bus;

  private constructor(id: string, calls: Bus, storage: Bus) {
    super(calls, storage);
    this.id = id;
    this.calls = calls;
    this.storage = storage;
  }

  /** Connects with the credentials of the (first) worker of an installation. */
  static async open(natsUrl: string): Promise<HostileWorker> {
    const secrets = secretsAt(natsUrl);
    const file = readdirSync(secrets).find((name) => secretForm.test(name)) ?? "";
    const id = secretForm.exec(file)?.[1] ?? "";
    const [nkey = "", storeNkey = ""] = readFileSync(join(secrets, file), "utf8").trim().split("\n");
    const inbox = subjects.inbox(workerInbox(id));
    const calls = await connectBus(natsUrl, "hostile-calls", { nkey, inbox });
    return new HostileWorker(id, calls, await connectBus(natsUrl, "hostile-storage", { nkey: storeNkey, inbox }));
  }
}

export class HostileGateway extends Hostile {
  readonly bus: Bus;

  private constructor(bus: Bus) {
    super(bus);
    this.bus = bus;
  }

  /** Connects with the credentials of the gateways of an installation. */
  static async open(natsUrl: string): Promise<HostileGateway> {
    const nkey = readFileSync(secretsOf({ paths: { secrets: secretsAt(natsUrl) } }).gateway, "utf8").trim();
    const identity = gatewayInbox(publicNkey(nkey));
    const access = { nkey, inbox: subjects.inbox(identity), gatewayReplies: subjects.gatewayReplies(identity) };
    return new HostileGateway(await connectBus(natsUrl, "hostile-gateway", access));
  }
}

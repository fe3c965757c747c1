/** What is really on the bus of an installation, and what arrives there: with the rights of root's commands, while an attacker tries something. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { type JetStreamManager, jetstreamManager } from "@nats-io/jetstream";
import type { Bus } from "../../shared/bus/nats.ts";
import { connectBus } from "./bus.ts";

export class BusWitness implements AsyncDisposable {
  readonly bus: Bus;
  readonly jsm: JetStreamManager;

  private constructor(bus: Bus, jsm: JetStreamManager) {
    [this.bus, this.jsm] = [bus, jsm];
  }

  /** @param name of its own, so that replies to others are not taken for its own */
  static async open(natsUrl: string, name: string): Promise<BusWitness> {
    const bus = await connectBus(natsUrl, name);
    return new BusWitness(bus, await jetstreamManager(bus.connection));
  }

  /** @returns what says it. */
  readonly tell =
    (subject: string, payload = "{}") =>
    async (): Promise<void> => {
      this.bus.connection.publish(subject, payload);
      await this.bus.connection.flush();
    };

  /** What arrives on the subjects meanwhile. */
  readonly arrives = async (subject: string, meanwhile: () => Promise<void>): Promise<string[]> => {
    const heard: string[] = [];
    const listening = this.bus.connection.subscribe(subject, { callback: (_error, message) => void heard.push(message.subject) });
    await this.bus.connection.flush();
    await meanwhile();
    await this.bus.connection.flush();
    listening.unsubscribe();
    return heard;
  };

  readonly lastOf = (stream: string, subject: string): Promise<string | undefined> =>
    this.jsm.streams.getMessage(stream, { last_by_subj: subject }).then(
      (message) => message?.string(),
      () => undefined,
    );

  /** Stores a canary. */
  readonly plant = async (stream: string, subject: string): Promise<string> => {
    const text = `canary-${randomBytes(8).toString("hex")}`;
    await this.jsm.jetstream().publish(subject, text);
    assert.equal(await this.lastOf(stream, subject), text);
    return text;
  };

  readonly unplant = async (stream: string, subject: string): Promise<void> => {
    await this.jsm.streams.purge(stream, { filter: subject });
  };

  async [Symbol.asyncDispose](): Promise<void> {
    await this.bus.close();
  }
}

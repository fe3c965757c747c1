/** What tests ask of a machine with services, and of a sandbox there. */
import assert from "node:assert/strict";
import { until } from "../helpers/until.ts";
import { Client } from "./client.ts";
import { programDir } from "./installed.ts";
import { type Machine, volumeDir } from "./machine.ts";

/** The services of a machine that runs everything. */
export const parts = ["sandgate-nats.service", "sandgate-worker.service", "sandgate-gateway@1.service"];
/** A loop that only goes on while nothing ends it. */
const ticker = "(while :; do echo tick >> /root/ticks; sleep 0.2; done) > /dev/null 2>&1 &";

export class Services {
  readonly client: Client;
  readonly #machine: Machine;

  constructor(machine: Machine) {
    this.#machine = machine;
    this.client = new Client((...argv) => machine.run(...argv), this.url, machine.key);
  }

  /** The gateway's address on the machine. */
  readonly url = "http://127.0.0.1:8080";

  /** Runs the installer as an administrator would. */
  install(...options: string[]): Promise<string> {
    return this.#machine.run(`${programDir}/systemd/install`, ...options);
  }

  /** A line that has the machine's volume used, for the settings file. */
  readonly volume = `SANDGATE_VOLUME=${volumeDir}`;

  async property(unit: string, name: string): Promise<string> {
    return (await this.#machine.run("systemctl", "show", `--property=${name}`, "--value", unit)).trim();
  }

  isActive(unit: string): Promise<boolean> {
    return this.#machine.run("systemctl", "is-active", "--quiet", unit).then(
      () => true,
      () => false,
    );
  }

  create(): Promise<string> {
    return this.client.create(() => this.#machine.run("journalctl", "-t", "sandgate-worker", "-o", "cat", "-n", "5"));
  }

  /** A sandbox with a file that must be kept, and a program that must go on. */
  async createBusy(): Promise<string> {
    const id = await this.create();
    await this.client.output(id, `echo kept > /root/kept; ${ticker}`);
    return id;
  }

  /** How often the program of such a sandbox has gone round. */
  async ticks(id: string): Promise<number> {
    return Number(await this.client.output(id, "wc -l < /root/ticks"));
  }

  /** Waits until a sandbox answers, and its program goes on. @param before how often that had gone round */
  async goesOn(id: string, before: number): Promise<void> {
    const seen = await until("the sandbox answers", () => this.ticks(id), 90_000);
    assert.ok(seen >= before, `${seen} after ${before}`);
    await until("its programs go on", async () => (await this.ticks(id)) > seen);
  }

  /** Waits until a sandbox answers with its file. */
  async isKept(id: string): Promise<void> {
    assert.equal(await until("the sandbox answers", () => this.client.output(id, "cat /root/kept"), 90_000), "kept\n");
  }
}

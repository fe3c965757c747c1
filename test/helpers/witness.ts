/** A neighbor on an attacked installation: its long command, and the processes that serve it, must survive the attack. */
import assert from "node:assert/strict";
import { type Api, collect } from "./api.ts";
import type { TestProcess } from "./process.ts";
import type { Stack } from "./stack.ts";

/** What a process logs when something fails outside any call. */
const unnoticed = ["unhandled_rejection", "uncaught_exception", "reader closed"];

export class Witness {
  readonly #api: Api;
  readonly #sandbox: string;
  readonly #running: ReturnType<typeof collect>;
  readonly #processes: readonly { readonly process: TestProcess; readonly readyLine: string }[];

  private constructor(stack: Stack, api: Api, sandbox: string, running: ReturnType<typeof collect>) {
    this.#api = api;
    this.#sandbox = sandbox;
    this.#running = running;
    // Its failure is told by `end`.
    running.catch(() => {});
    this.#processes = [stack.nats, ...stack.workers, ...stack.gateways].map((process) => ({ process, readyLine: process.readyLine as string }));
  }

  /** Starts a command that runs until `end`. */
  static async begin(stack: Stack, api: Api): Promise<Witness> {
    const sandbox = await api.create();
    const response = await api.stream(sandbox, "echo begun; until [ -e /tmp/end ]; do sleep 0.2; done; echo ended");
    assert.equal(response.status, 200);
    return new Witness(stack, api, sandbox, collect(response));
  }

  /** Asserts that the processes are still the same, that they answer, and that nothing failed in them unnoticed. */
  async expectUnharmed(): Promise<void> {
    for (const { process, readyLine } of this.#processes) {
      assert.equal(process.readyLine, readyLine, `${process.spec.name} has ended:\n${process.lines.slice(-5).join("\n").slice(0, 4_000)}`);
      const line = process.lines.find((text) => unnoticed.some((event) => text.includes(event)));
      assert.equal(line, undefined, `${process.spec.name} had a failure that no call was told of`);
    }
    assert.equal((await this.#api.execute(this.#sandbox, "echo here")).stdout, "here\n");
  }

  /** Lets the command end, checks all of its output, and deletes its sandbox. */
  async end(): Promise<void> {
    await this.#api.execute(this.#sandbox, "touch /tmp/end");
    const { stdout, last } = await this.#running;
    assert.equal(stdout, "begun\nended\n");
    assert.deepEqual(last, { exit_code: 0 });
    await this.expectUnharmed();
    await this.#api.delete(this.#sandbox);
  }
}

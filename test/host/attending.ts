/** A client of live sessions, on a machine where Sandgate is installed. */
import { join } from "node:path";
import { appDir } from "../../shared/programs.mjs";
import { subprotocol } from "../../shared/stream/session/protocol.ts";
import type { Client } from "./client.ts";
import { type InstalledMachine, programDir } from "./installed.ts";

/** What a client has seen. */
interface Seen {
  readonly output: string;
  readonly exit?: { readonly exit_code: number };
  readonly error?: { readonly code: string };
}

interface Session {
  readonly session_id: string;
  readonly command: string | null;
  readonly tty: boolean;
  readonly status: string;
}

/** The first message of a session that outlives its client. */
export const inTerminal = { type: "start", tty: true, cols: 91, rows: 33, detach_timeout: 600 };

export class Attending {
  readonly #machine: InstalledMachine;
  readonly #client: Client;
  readonly #program: string;

  private constructor(machine: InstalledMachine, client: Client, program: string) {
    this.#machine = machine;
    this.#client = client;
    this.#program = program;
  }

  static async on(machine: InstalledMachine, client: Client): Promise<Attending> {
    return new Attending(machine, client, await machine.give(join(appDir, "test/host/session.mjs")));
  }

  /** Attends a session until it has taken all steps. @param steps as `session.mjs` has them */
  async attend(id: string, first: object, ...steps: readonly object[]): Promise<Seen> {
    const { token } = await this.#client.call<{ token: string }>(`/v1/sandboxes/${id}/session-token`, {});
    const url = `ws://127.0.0.1:8080/v1/sandboxes/${id}/session?token=${token}`;
    const said = await this.#machine.run(
      ...[`${programDir}/node_modules/.bin/node`, this.#program, url, subprotocol, JSON.stringify(first)],
      ...steps.map((step) => JSON.stringify(step)),
    );
    return JSON.parse(said) as Seen;
  }

  /** The sessions that can be attached to. */
  async sessionsOf(id: string): Promise<readonly Session[]> {
    return (await this.#client.call<{ data: readonly Session[] }>(`/v1/sandboxes/${id}/sessions`)).data;
  }
}

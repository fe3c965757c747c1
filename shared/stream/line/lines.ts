/** The lines of a process, by the process at the other end. */
import type { Socket } from "node:net";
import { newId } from "../../util/ids.ts";
import type { Logger } from "../../util/log.ts";
import type { StreamFrame } from "./frames.ts";
import { Line } from "./line.ts";

interface Events {
  heard(peer: string, streamId: string, message: Uint8Array): void;
  /** A line is no more. @param untaken messages that the other end may not have taken, in order */
  broken(line: Line, untaken: readonly StreamFrame[]): void;
}

/** How a stream goes to the other end: over a line, which is a Unix socket or TLS to another machine, or over NATS. */
export type Way = Line["way"] | "nats";

export class Lines {
  readonly #events: Events;
  readonly #log: Logger;
  readonly #open = new Map<string, Line>();
  readonly #missed = new Set<(peer: string) => void>();
  readonly #counts: Record<Way, number> = { socket: 0, tls: 0, nats: 0 };

  constructor(events: Events, log: Logger) {
    this.#events = events;
    this.#log = log;
  }

  /** How many streams began to go each way since the start; one whose line has broken has gone both ways. */
  get counts(): Readonly<Record<Way, number>> {
    return this.#counts;
  }

  has(peer: string): boolean {
    return this.#open.has(peer);
  }

  /** Calls back whenever a stream would go over a line that is not there. */
  onMissed(listener: (peer: string) => void): void {
    this.#missed.add(listener);
  }

  /** The line for a new stream; undefined if it goes over NATS. */
  take(peer: string): Line | undefined {
    const line = this.#open.get(peer);
    this.count(line?.way ?? "nats");
    if (!line) for (const missed of this.#missed) missed(peer);
    return line;
  }

  /** Counts a stream that begins to go this way. */
  count(way: Way): void {
    this.#counts[way]++;
  }

  /** New streams with this process go over this line from now on. It replaces a line that is there. */
  add(peer: string, socket: Socket): void {
    const former = this.#open.get(peer);
    const id = newId("line");
    const line = new Line(peer, socket, {
      heard: (streamId, message) => this.#events.heard(peer, streamId, message),
      broken: (broken, untaken, why) => {
        if (this.#open.get(peer) === broken) this.#open.delete(peer);
        this.#log.info({ event: "line_down", peer, line: id, why: why.message, untaken: untaken.length }, "a line is closed");
        this.#events.broken(broken, untaken);
      },
    });
    if (!line.isOpen) return;
    this.#open.set(peer, line);
    this.#log.info({ event: "line_up", peer, line: id, way: line.way }, "streams go over a line");
    void former?.close();
  }

  /** Closes the line to a process that is gone. */
  drop(peer: string): void {
    void this.#open.get(peer)?.close();
  }

  /** Closes all lines when what was sent has been taken. */
  async close(): Promise<void> {
    await Promise.all([...this.#open.values()].map((line) => line.close()));
  }
}

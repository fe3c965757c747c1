/** What a service tells systemd, see sd_notify(3). Nothing happens where no service manager has asked for it. */
import type { Logger } from "./log.ts";
import type { Shutdown } from "./shutdown.ts";

const microsPerMs = 1_000;

export class ServiceManager {
  readonly #socket: string | undefined;
  /** How often it must hear of this process, in milliseconds; 0: never. */
  readonly #watchdogMs: number;

  /** @param variables what it has put into the environment of this process */
  constructor({ NOTIFY_SOCKET: socket, WATCHDOG_USEC: micros }: { readonly NOTIFY_SOCKET?: string; readonly WATCHDOG_USEC?: string }) {
    this.#socket = socket;
    this.#watchdogMs = Number(micros ?? 0) / microsPerMs;
  }

  /** Says that this process is ready, then regularly that its event loop turns, and at last that it stops. */
  async ready(shutdown: Shutdown, log: Logger): Promise<void> {
    if (!this.#socket) return;
    const { sendDatagram } = await import("./libc.ts");
    const socket = this.#socket;
    const tell = (state: string): void => {
      try {
        sendDatagram(socket, state);
      } catch (err) {
        log.warn({ event: "service_manager", err, state }, "the service manager could not be told");
      }
    };
    tell("READY=1");
    const timer = this.#watchdogMs > 0 ? setInterval(() => tell("WATCHDOG=1"), this.#watchdogMs / 2) : undefined;
    shutdown.onStop("service manager", () => {
      tell("STOPPING=1");
      clearInterval(timer);
    });
  }
}

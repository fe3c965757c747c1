/** Whose each worker's id is, in memory: by the claims of the workers, and by what operators have decided. */
import { WorkerClaim } from "../../shared/bus/entries.ts";
import type { WorkerPresence } from "../../shared/bus/heartbeat.ts";
import { BucketMirror } from "../../shared/bus/mirror.ts";
import type { Bus } from "../../shared/bus/nats.ts";
import { buckets } from "../../shared/bus/subjects.ts";
import { checker } from "../../shared/schemas/validate.ts";
import type { Logger } from "../../shared/util/log.ts";

export class Claims {
  readonly #mirror: BucketMirror<WorkerClaim>;

  private constructor(mirror: BucketMirror<WorkerClaim>) {
    this.#mirror = mirror;
  }

  /** Opens the bucket. Resolves once its current content is in memory. */
  static async watch(bus: Bus, log: Logger): Promise<Claims> {
    return new Claims(await BucketMirror.watch(bus, buckets.workers, checker(WorkerClaim), log));
  }

  /** Whether a process may speak for its worker: it was neither replaced nor forgotten. One of a version without claims may. */
  admits({ id, epoch }: Pick<WorkerPresence, "id" | "epoch">): boolean {
    const claim = this.#mirror.get(id);
    return claim === undefined || (claim.forgotten_at_ms === undefined && (epoch === undefined || epoch >= claim.epoch));
  }

  /** Whether a worker has claimed the id and was not forgotten. */
  has(workerId: string): boolean {
    const claim = this.#mirror.get(workerId);
    return claim !== undefined && claim.forgotten_at_ms === undefined;
  }

  /** Whether a worker has no claim, or was forgotten. Beyond doubt: what it had is given up then. @throws {SandgateError} `unavailable` */
  async isGone(workerId: string): Promise<boolean> {
    if (this.has(workerId)) return false;
    await this.#mirror.certain();
    return !this.has(workerId);
  }

  /**
   * Marks a worker as forgotten, for ever: no process of its machine is admitted any more.
   *
   * @param refuse called when a process has claimed the id since the last news of it; throws
   * @throws {SandgateError} `unavailable`
   */
  async forget(workerId: string, refuse: () => never): Promise<void> {
    const known = this.#mirror.get(workerId);
    const nowMs = Date.now();
    const mark = (claim: WorkerClaim): WorkerClaim => {
      if (claim.epoch !== (known?.epoch ?? 0)) refuse();
      return { ...claim, forgotten_at_ms: claim.forgotten_at_ms ?? nowMs };
    };
    if (await this.#mirror.change(workerId, mark)) return;
    if (!(await this.#mirror.create(workerId, { epoch: 0, claimed_at_ms: nowMs, forgotten_at_ms: nowMs }))) refuse();
  }

  /** Resolves when every claim that was made before this call is known here. */
  caughtUp(): Promise<void> {
    return this.#mirror.caughtUp();
  }

  stop(): void {
    this.#mirror.stop();
  }
}

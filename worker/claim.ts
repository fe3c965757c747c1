/**
 * This process's claim to its worker id. An id belongs to one machine, which has a random id of its own (`home`), and there to
 * the process that was started last. Each start raises the epoch, so that a process that was cut off or stood still finds out
 * that another has taken its place.
 *
 * A copy of the machine's disk has its `home`, too. So the first process after a start of the machine asks in the claim whether
 * the one that is named there still lives, which is then on another machine: that one claims the id again, and this one is refused.
 */
import { WorkerClaim } from "../shared/bus/entries.ts";
import { BucketWriter, type Versioned } from "../shared/bus/kv.ts";
import type { Bus } from "../shared/bus/nats.ts";
import { buckets } from "../shared/bus/subjects.ts";
import { SandgateError } from "../shared/errors.ts";
import { checker } from "../shared/schemas/validate.ts";
import { every } from "../shared/util/background.ts";
import type { Logger } from "../shared/util/log.ts";
import { pause, until } from "../shared/waiting.ts";
import type { Home } from "./identity.ts";
import type { StallWatch } from "./stall.ts";

const lookMs = 2_000;
/** By then, all copies of the storage have what was read to be otherwise, as long as they are connected. */
const againMs = 250;
/** In this time a process that lives has looked at its claim, and claimed its id again. */
const answerMs = 2.5 * lookMs;
const attemptsBeforeRefusal = 3;
const confirmAttemptsMax = 8;

/** Who claims an id. */
export interface Claimant {
  readonly workerId: string;
  readonly home: Home;
  readonly peer: string;
  readonly stalls: StallWatch;
}

/** The id is not this process's to use. Another start would find the same. */
export class ClaimRefused extends Error {
  override name = "ClaimRefused";
}

/** An operator has given up the worker, with its sandboxes. */
export class WorkerForgotten extends ClaimRefused {}

/** Why a claim is lost. */
export interface Loss {
  readonly why: string;
  /** Whether an operator has given up the worker; else another process goes on with its sandboxes. */
  readonly isForgotten: boolean;
}

export class Claim {
  readonly epoch: number;
  readonly #bucket: BucketWriter<WorkerClaim>;
  readonly #bus: Bus;
  readonly #claimant: Claimant;
  readonly #claimed: WorkerClaim;
  /** Of the claim as this process has written it last. */
  #revision: number;
  #confirming: Promise<void> | undefined;
  #onLost: (loss: Loss) => void = () => {};
  /** How often the connection was lost. */
  #outages = 0;
  /** The doubts that a look has settled. */
  #settled: number;

  private constructor(bus: Bus, bucket: BucketWriter<WorkerClaim>, claimant: Claimant, claimed: WorkerClaim, revision: number) {
    this.#bus = bus;
    this.#bucket = bucket;
    this.#claimant = claimant;
    this.#claimed = claimed;
    this.#revision = revision;
    this.epoch = claimed.epoch;
    this.#settled = this.#doubts;
    bus.onLost(() => this.#outages++);
  }

  /**
   * Claims the id. Takes seconds after a start of the machine if the process before has not left in good order.
   *
   * @throws {ClaimRefused} when it is another machine's, {WorkerForgotten}, {SandgateError} `unavailable`.
   */
  static async take(bus: Bus, claimant: Claimant): Promise<Claim> {
    const bucket = await BucketWriter.bind(bus, buckets.workers, checker(WorkerClaim));
    const { workerId } = claimant;
    for (let attempt = 0; ; attempt++) {
      if (attempt > 0) await pause(againMs);
      const found = await bucket.readVersion(workerId);
      const claimed = attempt < attemptsBeforeRefusal ? possibleClaim(claimant, found?.value) : nextClaim(claimant, found?.value);
      if (!claimed) continue;
      const abandoned = found && (await abandonedRevision(bucket, claimant, found));
      if (found && abandoned === undefined) continue;
      const revision = await (abandoned === undefined ? bucket.create(workerId, claimed) : bucket.replace(workerId, claimed, abandoned));
      if (revision !== undefined) return new Claim(bus, bucket, claimant, claimed, revision);
    }
  }

  /** Looks at the claim from now on. Returns a function that ends this. @param onLost is told when the id is no longer this process's */
  watch(log: Logger, onLost: (loss: Loss) => void): () => void {
    this.#onLost = onLost;
    const timer = every(lookMs, log, "the claim to the worker's id could not be read", () => this.#watched());
    return () => clearInterval(timer);
  }

  /**
   * Resolves when the id is this process's. Asks only if another process may have taken it unseen: because the connection was
   * lost, or this process stood still.
   *
   * @throws {SandgateError} `unavailable` when that cannot be known, or the claim is lost.
   */
  async sure(): Promise<void> {
    while (this.#settled < this.#doubts) await this.#confirmed();
  }

  /** Tells that this process ends, so that no later one has to ask. @throws {SandgateError} `unavailable` */
  async leave(): Promise<void> {
    if (this.#bus.connected) await this.#bucket.replace(this.#claimant.workerId, { ...this.#claimed, left_at_ms: Date.now() }, this.#revision);
  }

  async #watched(): Promise<void> {
    if (!this.#bus.connected) return;
    const { isFormer, isAsked } = await this.#look();
    if (isFormer || isAsked) await this.#confirmed();
  }

  /** How often another process may have come without this one's knowledge. */
  get #doubts(): number {
    return this.#outages + this.#claimant.stalls.times;
  }

  /** One confirmation at a time, for all who ask. */
  #confirmed(): Promise<void> {
    this.#confirming ??= this.#confirm().finally(() => {
      this.#confirming = undefined;
    });
    return this.#confirming;
  }

  /**
   * Writes the claim again in place of what this process has written last: only while nobody has taken the id does that succeed.
   * To read it would not do. In a cluster a copy that is behind may answer, which still has the claim of a process that was replaced.
   */
  async #confirm(): Promise<void> {
    // What is written says nothing about a doubt that comes meanwhile: the answer may have lain there unread.
    const doubts = this.#doubts;
    for (let attempt = 0; ; attempt++) {
      const revision = await this.#bucket.replace(this.#claimant.workerId, this.#claimed, this.#revision);
      if (revision !== undefined) {
        this.#revision = revision;
        this.#settled = Math.max(this.#settled, doubts);
        return;
      }
      if (attempt === confirmAttemptsMax) throw new SandgateError("unavailable", "the worker's id is being claimed");
      if (attempt > 0) await pause(againMs);
      this.#revision = (await this.#look()).revision;
    }
  }

  /** Finds out who has the id, as far as it can be read. @returns the claim that it found, which is this process's or one from before it */
  async #look(): Promise<{ readonly revision: number; readonly isFormer: boolean; readonly isAsked: boolean }> {
    const { workerId } = this.#claimant;
    const found = await this.#bucket.readVersion(workerId);
    // A claim from before this process's is of a copy that is behind, or of a storage that was restored from a backup.
    const isFormer = found !== undefined && isEarlier(found.value, this.#claimed);
    const lost = found && !isFormer ? lossOf(workerId, this.#claimed, found.value) : undefined;
    if (lost !== undefined) {
      this.#onLost(lost);
      throw new SandgateError("unavailable", "the worker is gone or restarting", { cause: new Error(lost.why) });
    }
    // The storage has lost it, as it has lost the entries, which are written again as well.
    const revision = found?.revision ?? (await this.#bucket.create(workerId, this.#claimed));
    if (revision === undefined) throw new SandgateError("unavailable", "the worker's id is being claimed");
    return { revision, isFormer, isAsked: found?.value.asked_at_ms !== undefined };
  }
}

/**
 * Finds out whether a process of another start of this machine has the id, which then runs on another one with a copy of the disk.
 *
 * @returns the revision of a claim that no living process defends; undefined when it has changed meanwhile
 * @throws {ClaimRefused} when one does
 */
async function abandonedRevision(
  bucket: BucketWriter<WorkerClaim>,
  { workerId, home }: Claimant,
  { value, revision }: Versioned<WorkerClaim>,
): Promise<number | undefined> {
  const mayLive = isHeld(value) && value.boot !== undefined && value.boot !== home.bootId;
  if (!mayLive) return revision;
  // Several may ask at once. Of those who get no answer, one can replace what all have read.
  const asked = value.asked_at_ms === undefined ? await bucket.replace(workerId, { ...value, asked_at_ms: Date.now() }, revision) : revision;
  if (asked === undefined) return undefined;
  const later = async (): Promise<WorkerClaim | undefined> => {
    const found = await bucket.readVersion(workerId);
    return found && found.revision > asked ? found.value : undefined;
  };
  const answer = await until(later, { pollMs: againMs, timeoutMs: answerMs });
  if (!answer) return asked;
  if (isHeld(answer) && answer.peer === value.peer && answer.asked_at_ms === undefined) throw new ClaimRefused(isCopied(workerId, home, answer));
  return undefined;
}

/** Whether a process has the id, if it lives. */
const isHeld = ({ left_at_ms, forgotten_at_ms }: WorkerClaim): boolean => left_at_ms === undefined && forgotten_at_ms === undefined;

/** What the claim may become; undefined when the id is another's, as far as was read: a copy that is behind may have answered. */
function possibleClaim(claimant: Claimant, found: WorkerClaim | undefined): WorkerClaim | undefined {
  try {
    return nextClaim(claimant, found);
  } catch (error) {
    if (error instanceof ClaimRefused) return undefined;
    throw error;
  }
}

/** What a claim becomes by the start of a process. @throws {ClaimRefused}. */
function nextClaim({ workerId, home, peer }: Claimant, found: WorkerClaim | undefined): WorkerClaim {
  const isOwn = found === undefined || found.home === home.id;
  if (isOwn && found?.forgotten_at_ms !== undefined) throw new WorkerForgotten(wasForgotten(workerId, found.forgotten_at_ms));
  if (!isOwn && found.forgotten_at_ms === undefined) throw new ClaimRefused(isAnothers(workerId, home, found));
  return { home: home.id, epoch: (found?.epoch ?? 0) + 1, peer, claimed_at_ms: Date.now(), boot: home.bootId };
}

/** Whether a claim is one of the same machine from before this process's, which only a storage that was set back still has. */
const isEarlier = (found: WorkerClaim, own: WorkerClaim): boolean => found.forgotten_at_ms === undefined && found.home === own.home && found.epoch < own.epoch;

/** Why a claim is lost; undefined if it is not. */
function lossOf(workerId: string, own: WorkerClaim, found: WorkerClaim): Loss | undefined {
  if (found.forgotten_at_ms !== undefined) return { why: wasForgotten(workerId, found.forgotten_at_ms), isForgotten: true };
  if (found.peer === own.peer) return undefined;
  const where = found.home === own.home ? "" : " on another machine";
  return { why: `another process${where} has taken the place of this worker (${workerId}) on ${timeOf(found.claimed_at_ms)}`, isForgotten: false };
}

const wasForgotten = (workerId: string, atMs: number): string =>
  `an operator has forgotten this worker (${workerId}) on ${timeOf(atMs)}; its sandboxes were given up. ` +
  "To use this machine again, move the worker's folder aside: it then begins as a new one";

const isAnothers = (workerId: string, { file }: Home, { home, claimed_at_ms }: WorkerClaim): string =>
  `the worker id ${workerId} is used by another machine, since ${timeOf(claimed_at_ms)}. Give this machine another SANDGATE_WORKER_ID; ` +
  `if the other one will never come back, run "sandgate-admin forget ${workerId}"; ` +
  `if this is that machine and its files were lost, write ${home} into ${file}`;

const isCopied = (workerId: string, { file }: Home, { claimed_at_ms }: WorkerClaim): string =>
  `the worker id ${workerId} is used by a machine that runs, since ${timeOf(claimed_at_ms)}, and whose ${file} this one has a copy of. ` +
  "To use both, remove Sandgate with its data from the copy and let it join as a machine of its own; if this is the one to go on, stop the other first";

const timeOf = (ms: number): string => new Date(ms).toISOString();

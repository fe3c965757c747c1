/**
 * What the worker may ask of the privileged helper: one line of JSON for a request, one for its reply. Declared once for both
 * ends, and without a schema library: the supervisor, which stays resident, loads this as well.
 */

interface Range {
  readonly min: number;
  readonly max: number;
}

/** The ids that one sandbox may have: a range. As many are for what all sandboxes of an account have in common, their files on disk. */
export const idsPerSandbox = 65_536;

/** More than there are ids for, and the kernel's largest number of a descriptor. */
const rangesMax = 65_536;
const descriptorMax = 2 ** 30;

const descriptor: Range = { min: 0, max: descriptorMax };
const image: Range = { min: 1, max: Number.MAX_SAFE_INTEGER };
const process: Range = { min: 2, max: 2 ** 22 };

/** Every verb with all of its fields, which are whole numbers. No field is a path or text, so none can name anything else. */
export const verbs = {
  /** Limits the bytes that a subvolume of the data volume refers to. Ids below 256 are the file system's own, and 2^48 and above those of groups. */
  "quota.set": { subvolume: { min: 256, max: 2 ** 48 - 1 }, bytes: { min: 1, max: Number.MAX_SAFE_INTEGER } },
  /** Makes the data volume larger, by at least this much as far as its limits allow. */
  "volume.grow": { bytes: { min: 1, max: Number.MAX_SAFE_INTEGER } },
  /**
   * Mounts what is below the folder `source` at the empty folder `target` as well, with the ids of a range in place of those on
   * disk. Both are descriptors of the worker's. The helper alone knows which ids a range has.
   */
  "ids.map": { range: { min: 0, max: rangesMax - 1 }, source: descriptor, target: descriptor },
  /** Refused where processes cannot be dumped and restored. */
  "memory.check": {},
  /**
   * Dumps all processes of a sandbox into a new image, and replies while they stand still. They go on with `memory.resume`, and when
   * the connection ends. `process` is the sandbox's first.
   */
  "memory.dump": { image, process },
  /** Lets the processes go on that were dumped into an image. The value is the size of the image in bytes. */
  "memory.resume": { image },
  /**
   * Restores the processes of an image. `process` is the first of a sandbox that has been made and not started: the copies get its
   * ids, files, name and control group. The value is the process id of the first copy.
   */
  "memory.restore": { image, process },
  /**
   * Gives a running copy the network that its container has been given again: that of the copy was lost. `process` is the first of the
   * container, as in the restore, and `copy` that of the copy.
   */
  "memory.connect": { process, copy: process },
  /**
   * Tells the number by which an image is known on all machines of the installation: the helper has drawn it by lot. Refused where an
   * image cannot leave the machine.
   */
  "memory.identify": { image },
  /** Writes an image, sealed, into a pipe, of which `pipe` is a descriptor of the worker's. */
  "memory.export": { image, pipe: descriptor },
  /**
   * Makes a new image of what a helper of this installation has sealed, from a pipe, if it is the one with that identity and fits this
   * machine. The value is its size in bytes.
   */
  "memory.import": { image, identity: image, pipe: descriptor },
  /** Removes an image, if there is one. */
  "memory.remove": { image },
} as const satisfies Record<string, Record<string, Range>>;

export type Verb = keyof typeof verbs;
export type FieldsOf<V extends Verb> = { readonly [F in keyof (typeof verbs)[V]]: number };
export type Request = { [V in Verb]: { readonly id: number; readonly verb: V } & FieldsOf<V> }[Verb];

/**
 * Why a request was not carried out: it would exceed what the operator or the host's disk allows, it cannot be done to this sandbox
 * or here, or the system has refused it.
 */
const faults = ["exhausted", "refused", "failed"] as const;
export type Fault = (typeof faults)[number];

/** `value` is what some verbs reply with. */
export type Reply =
  | { readonly id: number; readonly ok: true; readonly value?: number }
  | { readonly id: number; readonly error: Fault; readonly message: string };

/** The longest request, and the requests that may wait for their replies. After anything else, the helper ends the connection. */
export const requestBytesMax = 256;
export const requestsMax = 64;
/** How many of them the worker sends. It may hear of a reply before the helper knows that it has been taken. */
export const requestsAtOnce = 32;

const idRange: Range = { min: 0, max: Number.MAX_SAFE_INTEGER };

/** @returns undefined if the line is not exactly as declared */
export function parseRequest(line: string): Request | undefined {
  const value = parseObject(line);
  if (typeof value?.verb !== "string" || !Object.hasOwn(verbs, value.verb)) return undefined;
  const fields: Readonly<Record<string, Range>> = { id: idRange, ...verbs[value.verb as Verb] };
  const isClosed = Object.keys(value).every((name) => name === "verb" || Object.hasOwn(fields, name));
  const isComplete = Object.entries(fields).every(([name, range]) => Object.hasOwn(value, name) && isWithin(value[name], range));
  return isClosed && isComplete ? (value as unknown as Request) : undefined;
}

/** @returns undefined if the line is not a reply */
export function parseReply(line: string): Reply | undefined {
  const value = parseObject(line);
  if (!value || !isWithin(value.id, idRange)) return undefined;
  if (value.value !== undefined && !isWithin(value.value, idRange)) return undefined;
  const isFault = faults.some((fault) => fault === value.error) && typeof value.message === "string";
  return value.ok === true || isFault ? (value as unknown as Reply) : undefined;
}

const isWithin = (value: unknown, { min, max }: Range): boolean => Number.isSafeInteger(value) && (value as number) >= min && (value as number) <= max;

function parseObject(line: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

/** Passwords as they are stored: scrypt with a salt of their own, a few computed at a time. */
import { randomBytes, type ScryptOptions, scrypt, timingSafeEqual } from "node:crypto";
import { SandgateError } from "../../shared/errors.ts";
import { Semaphore } from "../../shared/util/mutex.ts";

/** OWASP's advice for scrypt: 32 MiB and about 80 ms for each hash. */
const cost = { N: 2 ** 15, r: 8, p: 1 } as const;
const saltBytes = 16;
const hashBytes = 32;
/** Each takes a thread of the pool that files and names need too. */
const atOnceMax = 2;
const waitingMax = 32;

export class Passwords {
  readonly #slots = new Semaphore(atOnceMax);
  #inside = 0;
  /** Costs as much to verify as any other, and fits no password. */
  readonly #dummy = stored(cost, randomBytes(saltBytes), randomBytes(hashBytes));

  /** The text to store for a password. @throws {SandgateError} `unavailable` when too many others wait. */
  hash(password: string): Promise<string> {
    return this.#inTurn(async () => {
      const salt = randomBytes(saltBytes);
      return stored(cost, salt, await derive(password, salt, cost, hashBytes));
    });
  }

  /**
   * Whether the password is the one that was stored. Without a stored text the answer is no, and takes as long as any.
   *
   * @throws {SandgateError} `unavailable` when too many others wait.
   */
  verify(password: string, storedText: string = this.#dummy): Promise<boolean> {
    return this.#inTurn(async () => {
      const { parameters, salt, hash } = parsed(storedText);
      return timingSafeEqual(await derive(password, salt, parameters, hash.length), hash);
    });
  }

  async #inTurn<T>(work: () => Promise<T>): Promise<T> {
    if (this.#inside >= atOnceMax + waitingMax) throw new SandgateError("unavailable", "too many people are logging in; try again");
    this.#inside++;
    try {
      return await this.#slots.run(work);
    } finally {
      this.#inside--;
    }
  }
}

interface Parameters {
  readonly N: number;
  readonly r: number;
  readonly p: number;
}

/** The same characters, however the keyboard composed them. */
function derive(password: string, salt: Buffer, { N, r, p }: Parameters, length: number): Promise<Buffer> {
  const options: ScryptOptions = { N, r, p, maxmem: 256 * r * (N + p) };
  return new Promise((resolve, reject) => {
    scrypt(password.normalize("NFKC"), salt, length, options, (error, key) => (error ? reject(error) : resolve(key)));
  });
}

function stored({ N, r, p }: Parameters, salt: Buffer, hash: Buffer): string {
  return ["scrypt", N, r, p, salt.toString("base64url"), hash.toString("base64url")].join("$");
}

/** @throws {Error} when the record is damaged: nobody must get in by that. */
function parsed(text: string): { parameters: Parameters; salt: Buffer; hash: Buffer } {
  const [, N, r, p, salt = "", hash = ""] = /^scrypt\$(\d+)\$(\d+)\$(\d+)\$([\w-]{16,})\$([\w-]{32,})$/.exec(text) ?? [];
  if (!hash) throw new Error("a stored password is not valid");
  return { parameters: { N: Number(N), r: Number(r), p: Number(p) }, salt: Buffer.from(salt, "base64url"), hash: Buffer.from(hash, "base64url") };
}

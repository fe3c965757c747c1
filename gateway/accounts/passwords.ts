/** Password hashing with scrypt and a salt per password. Only a few hashes are computed at a time. */
import { randomBytes, type ScryptOptions, scrypt, timingSafeEqual } from "node:crypto";
import { SandgateError } from "../../shared/errors.ts";
import type { LoginRecord } from "../../shared/schemas/records.ts";
import { Semaphore } from "../../shared/util/mutex.ts";

const saltBytes = 16;
const hashBytes = 32;
/** Each hash occupies a thread of libuv's pool, which file access and DNS lookups need too. */
const atOnceMax = 2;
const waitingMax = 32;

/** A login with another password, which ends the sessions of the former one. @param password as it is stored */
export const withPassword = (record: LoginRecord, password: string): LoginRecord => ({
  ...record,
  password,
  password_version: record.password_version + 1,
  changed_at_ms: Date.now(),
});

export class Passwords {
  /** Of new hashes. */
  readonly #cost: Parameters;
  readonly #slots = new Semaphore(atOnceMax);
  #inside = 0;
  /** Takes as long to verify as any other, and matches no password. */
  readonly #dummy: string;

  /** @param costLog2 with 15, a hash takes 32 MiB and about 80 ms, as OWASP advises for scrypt */
  constructor(costLog2: number) {
    this.#cost = { N: 2 ** costLog2, r: 8, p: 1 };
    this.#dummy = stored(this.#cost, randomBytes(saltBytes), randomBytes(hashBytes));
  }

  /** The text to store for a password. @throws {SandgateError} `unavailable` when too many calls are waiting. */
  hash(password: string): Promise<string> {
    return this.#inTurn(async () => {
      const salt = randomBytes(saltBytes);
      return stored(this.#cost, salt, await derive(password, salt, this.#cost, hashBytes));
    });
  }

  /**
   * Whether the password matches the stored text. Without a stored text the result is false, after the same time.
   *
   * @throws {SandgateError} `unavailable` when too many calls are waiting.
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

/** Derives the hash. Unicode is normalized, so that the way a keyboard composes characters does not matter. */
function derive(password: string, salt: Buffer, { N, r, p }: Parameters, length: number): Promise<Buffer> {
  const options: ScryptOptions = { N, r, p, maxmem: 256 * r * (N + p) };
  return new Promise((resolve, reject) => {
    scrypt(password.normalize("NFKC"), salt, length, options, (error, key) => (error ? reject(error) : resolve(key)));
  });
}

function stored({ N, r, p }: Parameters, salt: Buffer, hash: Buffer): string {
  return ["scrypt", N, r, p, salt.toString("base64url"), hash.toString("base64url")].join("$");
}

/** @throws {Error} when the record is damaged, so that it never grants access. */
function parsed(text: string): { parameters: Parameters; salt: Buffer; hash: Buffer } {
  const [, N, r, p, salt = "", hash = ""] = /^scrypt\$(\d+)\$(\d+)\$(\d+)\$([\w-]{16,})\$([\w-]{32,})$/.exec(text) ?? [];
  if (!hash) throw new Error("a stored password is not valid");
  return { parameters: { N: Number(N), r: Number(r), p: Number(p) }, salt: Buffer.from(salt, "base64url"), hash: Buffer.from(hash, "base64url") };
}

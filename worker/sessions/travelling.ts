/**
 * What goes in front of an image of memory that leaves its worker: the sessions that it includes, without what their terminals have
 * shown, since this part is not sealed. Whoever fetches the image believes of it what it would believe of the sandbox itself.
 */
import Type from "typebox";
import { SandgateError } from "../../shared/errors.ts";
import { checker } from "../../shared/schemas/validate.ts";
import { ByteSource } from "../../shared/util/byte-source.ts";
import { CarriedSession } from "./carried.ts";

const lengthBytes = 4;
/** Commands are long at most; there are some dozens of them. */
const headBytesMax = 16 * 1024 * 1024;
const checked = checker(Type.Array(CarriedSession));

export async function* withSessions(sessions: readonly CarriedSession[], image: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const head = Buffer.from(JSON.stringify(sessions.map((session) => ({ ...session, output: "" }))));
  const length = Buffer.alloc(lengthBytes);
  length.writeUInt32BE(head.length);
  yield Buffer.concat([length, head]);
  yield* image;
}

/** @throws {SandgateError} `internal_error` unless it begins like one */
export async function sessionsOf(stream: AsyncIterable<Uint8Array>): Promise<{
  readonly sessions: CarriedSession[];
  /** The image, sealed. */
  readonly rest: AsyncIterable<Uint8Array>;
}> {
  const wrong = (): Error => new SandgateError("internal_error", "what is stored is no image of memory");
  const bytes = new ByteSource(stream, wrong);
  const length = (await bytes.take(lengthBytes)).readUInt32BE();
  if (length > headBytesMax) throw wrong();
  const head = await bytes.take(length);
  try {
    return { sessions: checked(JSON.parse(head.toString())), rest: bytes.rest() };
  } catch {
    throw wrong();
  }
}

/** Gives a dump the user ids of another sandbox. */
import { readdirSync } from "node:fs";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Refusal } from "../refusal.ts";
import type { Extent, SandboxProcess } from "./owner.ts";

/** Of CRIU's images: that of all service images, and that of user namespaces. */
const magics = [0x54564319, 0x55474906];
const wordBytes = 4;

/** Replaces the maps of the user namespace of an image. @throws {Refusal} if it does not have one */
export async function giveUsers(dir: string, { users, groups }: Pick<SandboxProcess, "users" | "groups">): Promise<void> {
  const names = readdirSync(dir).filter((name) => /^userns-\d+\.img$/.test(name));
  const [name] = names;
  if (name === undefined || names.length > 1) throw new Refusal("refused", "the processes have no user namespace, or several");
  // The image may share the file.
  await rm(join(dir, name));
  await writeFile(join(dir, name), usersImage(users, groups), { flag: "wx" });
}

/** As CRIU writes it: magic numbers, and one message with its length, of `userns.proto`. */
export function usersImage(users: readonly Extent[], groups: readonly Extent[]): Buffer {
  const message = Buffer.concat([...users.map((extent) => field(1, extent)), ...groups.map((extent) => field(2, extent))]);
  const head = Buffer.alloc(wordBytes * 3);
  [...magics, message.length].forEach((word, index) => head.writeUInt32LE(word, wordBytes * index));
  return Buffer.concat([head, message]);
}

/** A field with a message in it, as Protocol Buffers encode them. */
function field(number: number, { inside, outside, count }: Extent): Buffer {
  const numbers = [inside, outside, count].flatMap((value, index) => [(index + 1) << 3, ...varint(value)]);
  return Buffer.from([(number << 3) | 2, ...varint(numbers.length), ...numbers]);
}

function varint(value: number): number[] {
  const bytes: number[] = [];
  for (let rest = value; ; rest = Math.floor(rest / 0x80)) {
    if (rest < 0x80) return [...bytes, rest];
    bytes.push((rest % 0x80) | 0x80);
  }
}

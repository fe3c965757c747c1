/**
 * The key of an installation with which its helpers seal images of processes: made on the machine with the NATS server, and given to
 * the others in the word by which they join. Root alone reads it.
 */
import { randomBytes } from "node:crypto";
import type { Instance } from "../../base/instance.ts";
import { readIfThere } from "../../base/write-file.ts";
import { kept } from "../../supervisor/credentials.ts";
import { Refusal } from "../refusal.ts";
import { keyBytes } from "./sealed.ts";

/** As text; made if there is none. */
export const memoryKeyOf = ({ paths }: Pick<Instance, "paths">): Promise<string> => kept(paths.memoryKey, () => randomBytes(keyBytes).toString("base64url"));

/** @throws {Refusal} where there is none */
export async function readMemoryKey(file: string): Promise<Buffer> {
  const key = Buffer.from((await readIfThere(file))?.trim() ?? "", "base64url");
  if (key.length !== keyBytes) throw new Refusal("refused", "this machine does not have the key of the installation for images of memory");
  return key;
}

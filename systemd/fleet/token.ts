/** What a machine needs to join a fleet, in one word that can be pasted. It is a secret: who has it can be that member. */

import { createUser } from "@nats-io/nkeys";
import Type, { type Static } from "typebox";
import { publicNkey } from "../../shared/bus/nkey.ts";
import { checker } from "../../shared/schemas/validate.ts";
import { newId } from "../../shared/util/ids.ts";
import { StartFailure } from "../base/failure.ts";
import type { Instance } from "../base/instance.ts";
import { readIfThere } from "../base/write-file.ts";
import { memberOf, type Node, newNode } from "../cluster/identity.ts";
import { memoryKeyOf } from "../helper/memory/key.ts";
import { secretsOf } from "../supervisor/bus-identities.ts";
import { apiKeyOf } from "../supervisor/credentials.ts";
import type { Member } from "./members.ts";

const prefix = "sgj_";

const Token = Type.Object({
  version: Type.Literal(1),
  /** What the machine runs. */
  role: Type.Enum(["worker", "gateway", "nats", "all"] as const),
  id: Type.String(),
  /** Where the machine reaches the NATS server, or several, separated by commas. */
  url: Type.String(),
  /** By which it knows the servers, in PEM. */
  certificate: Type.String(),
  /** Of its nkeys: a worker has two, and so has a machine with a NATS server. */
  seeds: Type.Array(Type.String()),
  /** The key of the authority that signs the certificates of NATS servers; only for machines with one. */
  authorityKey: Type.Optional(Type.String()),
  /** Of the first account; only for gateways, which may read and write all accounts anyway. */
  apiKey: Type.Optional(Type.String()),
  /** With which the helpers of all machines seal images of processes; not for gateways. */
  memoryKey: Type.Optional(Type.String()),
});
export type Token = Static<typeof Token>;

const check = checker(Token);

export const encodeToken = (token: Token): string => prefix + Buffer.from(JSON.stringify(token)).toString("base64url");

/** @throws {StartFailure} if it is not one, or only a part of one. */
export function decodeToken(text: string): Token {
  const word = text.trim();
  try {
    if (!word.startsWith(prefix)) throw new Error(`it does not begin with ${prefix}`);
    return check(JSON.parse(Buffer.from(word.slice(prefix.length), "base64url").toString()));
  } catch (error) {
    throw new StartFailure("--join takes the whole word that sandgate-admin join-token has printed, and nothing else.", { cause: error });
  }
}

const decoder = new TextDecoder();
const newSeed = (): string => decoder.decode(createUser().getSeed());

/**
 * A new member, and what it joins with. Only the latter has its secrets.
 *
 * @param servers where the machine reaches the bus
 * @param node of this machine, if there are several NATS servers
 */
export async function makeToken(instance: Instance, role: Token["role"], servers: readonly string[], node?: Node): Promise<{ member: Member; token: Token }> {
  const certificate = node?.authority.certificate ?? (await readIfThere(secretsOf(instance).certificate)) ?? "";
  const common = { version: 1, role, url: servers.join(","), certificate } as const;
  const withKey = async (token: Token): Promise<Token> => ({ ...token, apiKey: await apiKeyOf(instance) });
  if (role === "nats" || role === "all") {
    if (!node) throw new StartFailure("this machine is no node of a cluster");
    const { id, seeds, authority } = newNode(node.authority, servers);
    const token: Token = { ...common, id, seeds, authorityKey: authority.key, memoryKey: await memoryKeyOf(instance) };
    return { member: memberOf({ id, seeds, authority, servers: [] }, "waiting"), token: role === "all" ? await withKey(token) : token };
  }
  const id = newId(role);
  const seeds = role === "worker" ? [newSeed(), newSeed()] : [newSeed()];
  const [nkey = "", storeNkey = ""] = seeds.map(publicNkey);
  const token: Token = { ...common, id, seeds };
  if (role === "worker") return { member: { role, id, nkey, storeNkey }, token: { ...token, memoryKey: await memoryKeyOf(instance) } };
  return { member: { role, id, nkey }, token: await withKey(token) };
}

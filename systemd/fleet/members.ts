/** Workers and gateways on other machines: the public keys by which the owned NATS server knows them. */
import { rm } from "node:fs/promises";
import Type, { type Static } from "typebox";
import { checker } from "../../shared/schemas/validate.ts";
import { messageOf, StartFailure } from "../base/failure.ts";
import type { Paths } from "../base/instance.ts";
import { readIfThere, replaceFile } from "../base/write-file.ts";

const Id = Type.String({ pattern: "^[a-zA-Z0-9_-]{1,63}$" });
/** Public, of a user. */
const Nkey = Type.String({ pattern: "^U[A-Z2-7]{55}$" });

/** The machine with a NATS server that it runs on, with which it comes and goes. */
const machine = Type.Optional(Id);
const Port = Type.Integer({ minimum: 1, maximum: 65_535 });

/** A machine with a NATS server, where there are several. */
const NatsMember = Type.Object({
  role: Type.Literal("nats"),
  id: Id,
  nkey: Nkey,
  systemNkey: Nkey,
  /** `waiting`: its server does not run. `starting`: it runs, and nobody may use it. `active`: it is a node of the cluster. */
  state: Type.Enum(["waiting", "starting", "active"] as const),
  /** Where others reach it: absent until the machine itself has said so. */
  place: Type.Optional(
    Type.Object({
      host: Type.String({ pattern: "^[A-Za-z0-9.:-]{1,253}$" }),
      port: Port,
      clusterPort: Port,
      /** The SHA-256 of the public key of its certificate, in hex: other nodes talk to nobody with another one. */
      fingerprint: Type.String({ pattern: "^[0-9a-f]{64}$" }),
    }),
  ),
});
export type NatsMember = Static<typeof NatsMember>;

export const Member = Type.Union([
  Type.Object({ role: Type.Literal("worker"), id: Id, nkey: Nkey, storeNkey: Nkey, machine }),
  Type.Object({
    role: Type.Literal("gateway"),
    id: Id,
    nkey: Nkey,
    machine,
    /** Not a gateway, but root's commands on the machine, which may do everything. Versions before 0.2 let gateways do so, and take it for one. */
    root: Type.Optional(Type.Literal(true)),
  }),
  NatsMember,
]);
export type Member = Static<typeof Member>;

export const isNats = (member: Member): member is NatsMember => member.role === "nats";

const checkMembers = checker(Type.Array(Member));

/** @throws {StartFailure} if the list is invalid. */
export async function readMembers({ natsMembers: file, formerNatsMembers: former }: Paths): Promise<Member[]> {
  await takeOver(former, file);
  const text = await readIfThere(file);
  return text === undefined ? [] : parseMembers(file, text);
}

/** @param file where the list is, for the message @throws {StartFailure} if it is invalid */
export function parseMembers(file: string, text: string): Member[] {
  try {
    return checkMembers(JSON.parse(text));
  } catch (error) {
    throw new StartFailure(`${file} must be a list of {"role", "id", "nkey"}, for workers also "storeNkey" (the public nkeys, U…): ${messageOf(error)}`);
  }
}

export const membersText = (members: readonly Member[]): string => `${JSON.stringify(members, undefined, 2)}\n`;

export async function writeMembers({ natsMembers: file }: Paths, members: readonly Member[]): Promise<void> {
  await replaceFile(file, membersText(members), { mode: 0o600 });
}

async function takeOver(former: string, file: string): Promise<void> {
  const text = await readIfThere(former);
  if (text === undefined) return;
  const workers = JSON.parse(text) as object[];
  if ((await readIfThere(file)) === undefined)
    await replaceFile(file, JSON.stringify(workers.map((worker) => ({ role: "worker", ...worker }))), { mode: 0o600 });
  await rm(former);
}

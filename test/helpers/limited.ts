/** One key through several gateways: calls that are counted, and which gateway counts them. */
import { rendezvous } from "../../gateway/limit/ownership.ts";
import { type Answer, Api } from "./api.ts";
import { peerOf, type Stack } from "./stack.ts";
import { until } from "./until.ts";

/** The key of `api` through each gateway, in the order of `stack.gateways`. */
export function through(stack: Stack, { apiKey }: Api): Api[] {
  return stack.urls.map((url) => new Api({ url, apiKey }));
}

/** The peer name of a gateway since its last start. */
export function gatewayId(stack: Stack, index: number): string {
  const ready = stack.gateways[index]?.lines.findLast((line) => line.includes('"event":"ready"'));
  if (!ready) throw new Error("the gateway has not started");
  return peerOf(ready);
}

/** Which of the gateways counts for a key when these run; all, unless others are named. */
export function ownerIndex(stack: Stack, keyId: string, running = stack.gateways.map((_, index) => index)): number {
  const owner = rendezvous(
    keyId,
    running.map((index) => gatewayId(stack, index)),
  );
  return running.find((index) => gatewayId(stack, index) === owner) ?? 0;
}

export interface Spent {
  readonly admitted: number;
  readonly refused: readonly Answer[];
}

/** Makes simultaneous calls that cost one token each, through each of the gateways in turn. Throws on any other answer. */
export async function spend(apis: readonly Api[], count: number): Promise<Spent> {
  const answers = await Promise.all(Array.from({ length: count }, (_, index) => (apis[index % apis.length] as Api).call("GET", "/v1/sandboxes/list")));
  const refused = answers.filter(({ status }) => status === 429);
  const admitted = answers.filter(({ status }) => status === 200).length;
  if (admitted + refused.length < count) throw new Error(`answered ${answers.map(({ status }) => status).join()}`);
  return { admitted, refused };
}

/** Resolves when the gateways that run have noticed that another one, named as it called itself, is gone. */
export async function noticedGone(stack: Stack, gone: string, running: readonly number[]): Promise<void> {
  const notices = (line: string): boolean => line.includes('"event":"peer_gone"') && line.includes(gone);
  await until("the others to notice", () => running.every((index) => stack.gateways[index]?.lines.some(notices)));
}

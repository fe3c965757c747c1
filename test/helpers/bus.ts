/** Connects tests to the bus of an installation: by an address that includes the identity. */
import { readFileSync } from "node:fs";
import type { BusAccess } from "../../shared/bus/connect.ts";
import { Bus } from "../../shared/bus/nats.ts";
import { subjects } from "../../shared/bus/subjects.ts";
import { createLogger } from "../../shared/util/log.ts";
import type { BusSettings } from "../../systemd/supervisor/nats.ts";

/** A single string, so that it fits into an environment variable. @param settings of a part, with the identity of root's commands in place of its own */
export function busAddress({ SANDGATE_NATS_URL: url = "", SANDGATE_NATS_NKEY_FILE: nkeyFile = "", SANDGATE_NATS_CA: ca = "" }: BusSettings): string {
  const address = new URL(url);
  address.searchParams.set("nkeyFile", nkeyFile);
  address.searchParams.set("ca", ca);
  return address.href;
}

/** Connects as root's commands do, which may do everything, or as `change` says. */
export async function connectBus(address: string, name: string, change: Partial<BusAccess> = {}): Promise<Bus & AsyncDisposable> {
  const { protocol, host, searchParams } = new URL(address);
  const nkeyFile = searchParams.get("nkeyFile");
  const ca = searchParams.get("ca");
  const access = { ...(nkeyFile ? { nkey: readFileSync(nkeyFile, "utf8").trim() } : {}), ...(ca ? { ca } : {}), inbox: subjects.inbox(name), ...change };
  const bus = await Bus.connect(`${protocol}//${host}`, name, createLogger("test", "silent"), access);
  return Object.assign(bus, { [Symbol.asyncDispose]: () => bus.close() });
}

/** Metrics of what the NATS servers store, as a gateway may ask for it: of the streams that it uses, and of nothing else. */
import type { StreamInfo } from "@nats-io/jetstream";
import { Counter, Gauge, type Registry } from "prom-client";
import { openStorage } from "../../shared/bus/jetstream.ts";
import type { Bus } from "../../shared/bus/nats.ts";
import { allStreams } from "../../shared/bus/subjects.ts";
import { collect, type Reading } from "./collect.ts";

/** Less than a scrape may take. */
const askMs = 2_000;

type Stored = readonly [stream: string, info: StreamInfo | undefined];

/** Registers them. @returns a function that asks for them anew, and never throws */
export function tellOfStorage(registry: Registry, bus: Bus): () => Promise<void> {
  let stored: readonly Stored[] = [];
  const tell = (name: string, help: string, read: (info: StreamInfo) => number): void => {
    const readings = (): Reading[] => stored.flatMap(([stream, info]) => (info ? [[{ stream }, read(info)] as const] : []));
    collect(registry, Gauge, `sandgate_storage_${name}`, help, readings, "stream");
  };
  const up = (): Reading[] => stored.map(([stream, info]) => [{ stream }, info ? 1 : 0]);
  collect(registry, Gauge, "sandgate_storage_up", "Whether a NATS server that leads the stream answers.", up, "stream");
  tell("bytes", "Disk space that the stream takes.", ({ state }) => state.bytes);
  tell("max_bytes", "Disk space that the stream may take.", ({ config }) => config.max_bytes);
  tell("messages", "Entries in the stream.", ({ state }) => state.messages);
  tell("copies", "NATS servers that are to have the stream.", ({ config }) => config.num_replicas);
  tell("copies_current", "NATS servers that have all of the stream.", currentCopies);
  tellOfConnection(registry, bus);
  return async () => {
    stored = await read(bus);
  };
}

/** The gateway's own connection: what it says and hears. */
function tellOfConnection(registry: Registry, bus: Bus): void {
  collect(registry, Gauge, "sandgate_bus_up", "Whether this gateway reaches a NATS server that can store something.", () => [[{}, bus.connected ? 1 : 0]]);
  const count = (name: string, help: string, sent: "outBytes" | "outMsgs", received: "inBytes" | "inMsgs"): void => {
    const readings = (): Reading[] => {
      const counted = bus.connection.stats();
      return [
        [{ direction: "sent" }, counted[sent]],
        [{ direction: "received" }, counted[received]],
      ];
    };
    collect(registry, Counter, `sandgate_bus_${name}_total`, help, readings, "direction");
  };
  count("bytes", "Bytes between this gateway and NATS.", "outBytes", "inBytes");
  count("messages", "Messages between this gateway and NATS.", "outMsgs", "inMsgs");
}

/** What is known of all streams now; a stream without a leader answers nothing. */
async function read(bus: Bus): Promise<Stored[]> {
  const { jsm } = await openStorage(bus, askMs);
  const ask = async (stream: string): Promise<StreamInfo | undefined> => {
    try {
      return await bus.whileConnected(() => jsm.streams.info(stream));
    } catch {
      return undefined;
    }
  };
  return Promise.all(allStreams.map(async (stream) => [stream, await ask(stream)] as const));
}

/** A server that is alone has the only one. */
const currentCopies = ({ cluster }: StreamInfo): number => 1 + (cluster?.replicas ?? []).filter(({ current }) => current).length;

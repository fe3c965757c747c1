/** The records of the layer store: what there is of a worker's layers, and under which name their bytes are. */
import { type JetStreamClient, type JetStreamManager, JsHeaders } from "@nats-io/jetstream";
import { headers } from "@nats-io/transport-node";
import Type, { type Static } from "typebox";
import { checker } from "../schemas/validate.ts";
import { isApiError } from "./failures.ts";
import { openStorage } from "./jetstream.ts";
import { decodeJson, encodeJson } from "./messages.ts";
import type { Bus } from "./nats.ts";
import { layerStore, layerSubjects } from "./subjects.ts";

/** How long the server may take for one piece. */
const timeoutMs = 30_000;

/** As NATS object stores have them. */
const LayerRecord = Type.Object({
  name: Type.String(),
  bucket: Type.String(),
  /** Names the pieces: the layer and the attempt to store it. */
  nuid: Type.String(),
  size: Type.Integer({ minimum: 0 }),
  chunks: Type.Integer({ minimum: 0 }),
  digest: Type.String(),
  mtime: Type.String(),
  deleted: Type.Optional(Type.Boolean()),
  options: Type.Optional(Type.Object({ max_chunk_size: Type.Optional(Type.Integer()) })),
  metadata: Type.Optional(Type.Record(Type.String(), Type.String())),
});
export type LayerRecord = Static<typeof LayerRecord>;
/** The part of a record that the layer's bytes determine. */
export type LayerContent = Pick<LayerRecord, "nuid" | "size" | "chunks" | "digest" | "options" | "metadata">;

const check = checker(LayerRecord);

interface Found {
  readonly record: LayerRecord;
  readonly revision: number;
}

export class LayerRecords {
  readonly bus: Bus;
  readonly js: JetStreamClient;
  readonly jsm: JetStreamManager;

  private constructor(bus: Bus, js: JetStreamClient, jsm: JetStreamManager) {
    this.bus = bus;
    this.js = js;
    this.jsm = jsm;
  }

  static async open(bus: Bus): Promise<LayerRecords> {
    const { js, jsm } = await openStorage(bus, timeoutMs);
    return new LayerRecords(bus, js, jsm);
  }

  /** The last record on a subject. @throws {SandgateError} `unavailable`. */
  async read(subject: string): Promise<Found | undefined> {
    const message = await this.bus.whileConnected(() => this.jsm.direct.getMessage(layerSubjects.stream, { last_by_subj: subject }));
    return message ? { record: check(decodeJson(message.data)), revision: message.seq } : undefined;
  }

  /** Replaces the record of revision `previous`, or whichever there is. A newer one stays. @throws {SandgateError} `unavailable`. */
  async put(workerId: string, record: Omit<LayerRecord, "bucket" | "mtime">, previous?: number): Promise<void> {
    const replacing = headers();
    replacing.set(JsHeaders.RollupHdr, JsHeaders.RollupValueSubject);
    const options = { headers: replacing, ...(previous === undefined ? {} : { expect: { lastSubjectSequence: previous } }) };
    const subject = this.bus.storeSubject(layerSubjects.record(workerId, record.name));
    await this.bus.whileConnected(async () => {
      try {
        await this.js.publish(subject, encodeJson({ ...record, bucket: layerStore, mtime: new Date().toISOString() }), options);
      } catch (error) {
        if (!isApiError(error, "wrongLastSequence")) throw error;
      }
    });
  }

  /** Makes that a layer is not seen any more, or is seen again, unless it was stored anew meanwhile. @throws {SandgateError} `unavailable`. */
  async mark(workerId: string, layerId: string, deleted: boolean): Promise<void> {
    const found = await this.read(layerSubjects.record(workerId, layerId));
    if (!found || found.record.deleted === deleted) return;
    const { bucket: _bucket, mtime: _mtime, ...record } = found.record;
    await this.put(workerId, { ...record, deleted }, found.revision);
  }

  /** How many messages the store has on each subject of a pattern. @throws {SandgateError} `unavailable`. */
  async subjects(pattern: string): Promise<Record<string, number>> {
    const { state } = await this.bus.whileConnected(() => this.jsm.streams.info(layerSubjects.stream, { subjects_filter: pattern }));
    return state.subjects ?? {};
  }

  /** How many messages the store has on the subjects of a pattern. @throws {SandgateError} `unavailable`. */
  async count(pattern: string): Promise<number> {
    return Object.values(await this.subjects(pattern)).reduce((sum, count) => sum + count, 0);
  }
}

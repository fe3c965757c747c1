/** Reads protobuf without a schema: enough for the messages of OTLP. */

/** The values of each field of a message, by number, in the order in which they came. */
export type Fields = ReadonlyMap<number, readonly (bigint | Buffer)[]>;

const wire = { varint: 0, fixed64: 1, bytes: 2, fixed32: 5 } as const;

/** @throws {Error} on what is no message */
export function readMessage(bytes: Buffer): Fields {
  const fields = new Map<number, (bigint | Buffer)[]>();
  let at = 0;
  const varint = (): bigint => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = bytes[at++];
      if (byte === undefined) throw new Error("a number is cut off");
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  };
  const take = (length: number): Buffer => {
    if (at + length > bytes.length) throw new Error("a field is cut off");
    at += length;
    return bytes.subarray(at - length, at);
  };
  const value = (type: number): bigint | Buffer => {
    if (type === wire.varint) return varint();
    if (type === wire.fixed64) return take(8).readBigUInt64LE();
    if (type === wire.fixed32) return BigInt(take(4).readUInt32LE());
    if (type === wire.bytes) return take(Number(varint()));
    throw new Error(`there is no wire type ${type}`);
  };
  while (at < bytes.length) {
    const key = Number(varint());
    const found = value(key & 7);
    fields.set(key >> 3, [...(fields.get(key >> 3) ?? []), found]);
  }
  return fields;
}

export const messagesOf = (fields: Fields, field: number): Fields[] => (fields.get(field) ?? []).map((value) => readMessage(value as Buffer));
export const textOf = (fields: Fields, field: number): string => bytesOf(fields, field).toString();
export const hexOf = (fields: Fields, field: number): string => bytesOf(fields, field).toString("hex");
export const numberOf = (fields: Fields, field: number): bigint => (fields.get(field)?.[0] as bigint | undefined) ?? 0n;

const bytesOf = (fields: Fields, field: number): Buffer => (fields.get(field)?.[0] as Buffer | undefined) ?? Buffer.alloc(0);

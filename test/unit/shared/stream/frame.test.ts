import assert from "node:assert/strict";
import { test } from "node:test";
import { decodeFrame, encodeFrame, type FrameHeader } from "../../../../shared/stream/frame.ts";

test("frames come out as they went in, whatever bytes they carry", () => {
  const payloads = [undefined, Buffer.from("text\nwith\nlines\n"), Buffer.from([0, 10, 13, 255, 123]), Buffer.alloc(0)];
  const headers: FrameHeader[] = [
    { seq: 0 },
    { seq: 7, end: { bytes: 5, summary: { text: "a\nb", nested: [1] } } },
    { seq: 8, fail: { code: "unavailable", message: "zeile\nä" } },
    { credit: 1_000_000 },
    { cancel: { code: "not_found", message: "" } },
  ];
  for (const header of headers) {
    for (const payload of payloads) {
      const frame = decodeFrame(encodeFrame(header, ...(payload ? [payload] : [])));
      assert.deepEqual(frame.header, header);
      assert.deepEqual(Buffer.from(frame.payload), payload ?? Buffer.alloc(0));
    }
  }
});

test("what is no frame is refused, whatever it is", () => {
  const garbage = [
    "",
    "no newline",
    "\n",
    "not json\n",
    "[]\n",
    "null\n",
    '{"seq":-1}\n',
    '{"seq":"0"}\n',
    '{"fail":{"code":"made_up","message":""}}\n',
    '{"end":{}}\n',
  ];
  for (const text of garbage) assert.throws(() => decodeFrame(Buffer.from(text)), { code: "internal_error" }, JSON.stringify(text));
});

test("frames of a later version with fields we do not know are read", () => {
  assert.equal(decodeFrame(Buffer.from('{"seq":3,"colour":"blue"}\nx')).header.seq, 3);
});

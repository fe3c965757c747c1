/** The wire of live sessions. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { constants } from "node:os";
import { test } from "node:test";
import { readClientMessage } from "../../../../../gateway/live/open.ts";
import { errorCodes } from "../../../../../shared/errors.ts";
import { decodeInput, decodeOutput, encodeInput, inputPayloadMax, outputPayloadMax } from "../../../../../shared/stream/session/frames.ts";
import {
  channels,
  closeCodeOf,
  closeReasons,
  frameBytesMax,
  shouldReattach,
  signalName,
  signalOfExitCode,
} from "../../../../../shared/stream/session/protocol.ts";
import { encodeOutput } from "../../../../helpers/output-frame.ts";

test("an output frame is channel, offset and bytes", () => {
  const bytes = Buffer.from("hello");
  const frame = encodeOutput({ channel: channels.stderr, offset: 0x0102030405, bytes });
  assert.equal(Buffer.from(frame).toString("hex"), `02${"0000000102030405"}${bytes.toString("hex")}`);
  assert.deepEqual(decodeOutput(frame), { channel: 2, offset: 0x0102030405, bytes: new Uint8Array(bytes) });
});

test("a frame is decoded wherever it lies in its buffer", () => {
  const frame = encodeOutput({ channel: channels.stdout, offset: Number.MAX_SAFE_INTEGER, bytes: Buffer.from("x") });
  const whole = Buffer.concat([Buffer.alloc(3), frame]);
  assert.equal(decodeOutput(whole.subarray(3))?.offset, Number.MAX_SAFE_INTEGER);
});

test("an input frame is channel 0 and bytes", () => {
  const frame = encodeInput(Buffer.from("ls\r"));
  assert.equal(Buffer.from(frame).toString("hex"), "006c730d");
  assert.equal(Buffer.from(decodeInput(frame) ?? []).toString(), "ls\r");
});

test("the largest payloads fill a frame exactly", () => {
  assert.equal(encodeOutput({ channel: 1, offset: 0, bytes: new Uint8Array(outputPayloadMax) }).length, frameBytesMax);
  assert.equal(encodeInput(new Uint8Array(inputPayloadMax)).length, frameBytesMax);
});

test("what is no frame is not taken for one", () => {
  for (const bytes of [[], [1], [0, 0, 0, 0, 0, 0, 0, 0, 0], [3, 0, 0, 0, 0, 0, 0, 0, 0]]) assert.equal(decodeOutput(Uint8Array.from(bytes)), undefined);
  for (const bytes of [[], [1, 2]]) assert.equal(decodeInput(Uint8Array.from(bytes)), undefined);
});

test("every close code is in the range of applications, and has one meaning", () => {
  const named = Object.values(closeReasons).map(({ code }) => code as number);
  assert.equal(new Set(named).size, named.length);
  for (const code of errorCodes) {
    assert.ok(closeCodeOf(code) >= 4_400 && closeCodeOf(code) < 4_600);
    assert.ok(!named.includes(closeCodeOf(code)));
  }
});

test("a client attaches again where the session may live on, and only there", () => {
  for (const code of [1001, 1006, 1012, 4002, 4003, 4429, 4500, 4503]) assert.ok(shouldReattach(code), `${code}`);
  for (const code of [1000, 4001, 4004, 4400, 4401, 4403, 4404, 4409, 4413, 4422]) assert.ok(!shouldReattach(code), `${code}`);
});

test("signals have the names and numbers of this system", () => {
  for (const [name, number] of Object.entries(constants.signals)) {
    if (["SIGPOLL", "SIGIOT", "SIGUNUSED"].includes(name)) continue;
    assert.equal(signalOfExitCode(128 + number), name);
    assert.equal(signalName(name.slice(3).toLowerCase()), name);
  }
  assert.deepEqual([signalName("NOPE"), signalOfExitCode(1), signalOfExitCode(128), signalOfExitCode(255)], [undefined, undefined, undefined, undefined]);
});

test("messages of clients are checked and say what is wrong", () => {
  assert.deepEqual(readClientMessage('{"type":"resize","cols":80,"rows":24}'), { type: "resize", cols: 80, rows: 24 });
  const wrong: Record<string, RegExp> = {
    "not json": /not valid JSON/,
    "[1]": /with a type/,
    null: /with a type/,
    '{"type":"nope"}': /unknown message type: nope/,
    '{"type":"start","user":"nobody"}': /^Unknown field: user$/,
    '{"type":"resize","cols":0,"rows":24}': /cols must be between 1 and 65535/,
    '{"type":"start","command":""}': /command must be/,
    '{"type":"start","detach_timeout":3601}': /detach_timeout must be between 0 and 3600/,
    '{"type":"start","env":{"A":1}}': /env\.A must be a string/,
    '{"type":"start","working_dir":"relative"}': /working_dir must be an absolute path/,
    '{"type":"attach"}': /session_id/,
    '{"type":"ack","offset":-1}': /offset must be a whole number from 0/,
  };
  for (const [text, message] of Object.entries(wrong)) assert.throws(() => readClientMessage(text), { code: "invalid_request", message });
});

test("the README lists every close code with its meaning", () => {
  const readme = readFileSync("README.md", "utf8");
  for (const { code, meaning, reattach } of Object.values(closeReasons)) assert.ok(readme.includes(`| ${code} | ${meaning} | ${reattach ? "yes" : "no"} |`));
});

// The chat transport and the reader of UI messages of the AI SDK against this
// server: HERMES_URL, HERMES_API_KEY.

import assert from "node:assert/strict";
import { DefaultChatTransport, readUIMessageStream } from "ai";

const base = process.env.HERMES_URL;
const headers = { Authorization: `Bearer ${process.env.HERMES_API_KEY}` };
const transport = new DefaultChatTransport({ api: `${base}/v1/ui/chat`, headers });

const guarded = '/tool terminal {"command": "rm -rf never-there"}\n/then\n/say after';
const tool = '/say I look.\n/tool terminal {"command": "echo ran"}\n/then\n/say all done';

let count = 0;
const user = (text) => ({ id: `u${++count}`, role: "user", parts: [{ type: "text", text }] });
const said = (message) => message.parts.filter((part) => part.type === "text").map((part) => part.text).join("|");
const send = (chatId, messages) =>
  transport.sendMessages({ chatId, messages, trigger: "submit-message", messageId: undefined, abortSignal: undefined });

/// The message as it is after every part; `stop` ends the reading early.
async function read(stream, message, stop = () => false) {
  const errors = [];
  const onError = (error) => errors.push(error);
  let last = message;
  for await (const next of readUIMessageStream({ stream, message, onError, terminateOnError: false })) {
    last = next;
    if (stop(next)) break;
  }
  return { message: last, errors };
}

const plain = await read(await send("plain", [user("/say hello")]));
assert.deepEqual([said(plain.message), plain.errors], ["hello", []]);
assert.equal(plain.message.metadata.status, "completed");

const ran = await read(await send("tools", [user(tool)]));
assert.deepEqual([said(ran.message), ran.errors], ["I look.|all done", []]);
const part = ran.message.parts.find((one) => one.type === "dynamic-tool");
assert.deepEqual([part.toolName, part.state, part.input], ["terminal", "output-available", { command: "echo ran" }]);

const failed = await read(await send("failed", [user("/error 401")]));
assert.equal(failed.errors.length, 1);

for (const approved of [true, false]) {
  const chat = `approval-${approved}`;
  const asks = (message) => message.parts.some((one) => one.state === "approval-requested");
  const asked = await read(await send(chat, [user(guarded)]), undefined, asks);
  const answered = structuredClone(asked.message);
  const waiting = answered.parts.find((one) => one.state === "approval-requested");
  waiting.state = "approval-responded";
  waiting.approval = { ...waiting.approval, approved };
  const after = await read(await send(chat, [user(guarded), answered]), answered);
  assert.deepEqual([said(after.message), after.errors], ["after", []]);
  const settled = after.message.parts.find((one) => one.type === "dynamic-tool");
  assert.equal(settled.state, approved ? "output-available" : "output-denied");
}

assert.equal(await transport.reconnectToStream({ chatId: "plain" }), null);
const leaves = await read(await send("resumed", [user("/say begun\n/tokens 300 300")]), undefined, (m) => said(m) !== "");
const back = await read(await transport.reconnectToStream({ chatId: "resumed" }));
assert.ok(said(back.message).startsWith(said(leaves.message)));
assert.deepEqual([back.message.metadata.status, back.errors], ["completed", []]);
// A tool of the page: the stream ends with its call, its output goes on.
const tools = [{ type: "function", function: { name: "look_up" } }];
const lookUp = user('/tool look_up {"order": "7"}\n/then\n/say sent');
const stream = await transport.sendMessages({
  chatId: "own-tool", messages: [lookUp], trigger: "submit-message", messageId: undefined, abortSignal: undefined,
  body: { tools },
});
const called = await read(stream);
const own = structuredClone(called.message);
const call = own.parts.find((one) => one.type === "dynamic-tool");
assert.deepEqual([call.toolName, call.state, call.providerExecuted ?? false], ["look_up", "input-available", false]);
Object.assign(call, { state: "output-available", output: "yesterday" });
const told = await read(await send("own-tool", [lookUp, own]), own);
assert.deepEqual([said(told.message), told.errors], ["sent", []]);
console.log("all of it works");

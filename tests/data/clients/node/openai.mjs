// The official client of OpenAI against this server: HERMES_URL, HERMES_API_KEY.

import assert from "node:assert/strict";
import OpenAI from "openai";

const base = process.env.HERMES_URL;
const key = process.env.HERMES_API_KEY;
const client = new OpenAI({ baseURL: `${base}/v1`, apiKey: key, maxRetries: 0, timeout: 20_000 });

const guarded = '/tool terminal {"command": "rm -rf never-there"}\n/then\n/say after';
const tool = '/say I look.\n/tool terminal {"command": "echo ran"}\n/then\n/say all done';
const user = (content) => [{ role: "user", content }];

async function decide(approval, choice) {
  const answer = await fetch(`${base}/v1/approvals/${approval}/decision`, {
    method: "POST",
    headers: { Authorization: `Bearer ${key}`, "Content-Type": "application/json" },
    body: JSON.stringify({ choice }),
  });
  assert.equal(answer.status, 200);
}

const model = (await client.models.list()).data[0].id;
assert.equal((await client.models.retrieve(model)).id, model);

const answer = await client.chat.completions.create({ model, messages: user("/say hello") });
assert.equal(answer.choices[0].message.content, "hello");

let text = "";
for await (const chunk of await client.chat.completions.create({ model, messages: user(tool), stream: true })) {
  text += chunk.choices[0].delta.content ?? "";
}
assert.equal(text, "I look.\n\nall done");

const helper = client.chat.completions.stream({ model, messages: user(tool) });
assert.equal((await helper.finalChatCompletion()).choices[0].message.content, text);

for (const choice of ["once", "deny"]) {
  let said = "";
  for await (const chunk of await client.chat.completions.create({ model, messages: user(guarded), stream: true })) {
    const asked = chunk.hermes?.approval;
    if (asked?.event === "approval.request") await decide(asked.approval_id, choice);
    said += chunk.choices[0].delta.content ?? "";
  }
  assert.equal(said, "after");
}

await assert.rejects(
  new OpenAI({ baseURL: `${base}/v1`, apiKey: "wrong", maxRetries: 0 }).models.list(),
  (error) => error instanceof OpenAI.AuthenticationError && error.code === "invalid_api_key",
);

const first = await client.responses.create({ model, input: tool });
assert.equal(first.status, "completed");
assert.equal(first.output_text, "I look.all done");
const second = await client.responses.create({ model, input: "/say next", previous_response_id: first.id });
assert.equal(second.output_text, "next");

const stream = client.responses.stream({ model, input: tool });
let deltas = "";
stream.on("response.output_text.delta", (event) => (deltas += event.delta));
assert.equal((await stream.finalResponse()).output_text, "I look.all done");
assert.equal(deltas, "I look.all done");

const begun = await client.responses.create({ model, input: "/tokens 400 400", background: true });
let number;
for await (const event of await client.responses.retrieve(begun.id, { stream: true })) {
  number = event.sequence_number;
  if (event.type === "response.output_text.delta") break;
}
let whole;
for await (const event of await client.responses.retrieve(begun.id, { stream: true, starting_after: number })) {
  assert.ok(event.sequence_number > number);
  number = event.sequence_number;
  if (event.type === "response.completed") whole = event.response;
}
assert.equal((await client.responses.retrieve(begun.id)).output_text, whole.output[0].content[0].text);

for (const approve of [true, false]) {
  const asked = await client.responses.create({ model, input: guarded });
  const item = asked.output.at(-1);
  assert.equal(item.type, "mcp_approval_request");
  const after = await client.responses.create({
    model,
    previous_response_id: asked.id,
    input: [{ type: "mcp_approval_response", approval_request_id: item.id, approve }],
  });
  assert.equal(after.output_text, "after");
}
// A function of the client: its call ends the response, its output goes on.
const tools = [{ type: "function", name: "look_up", strict: false, parameters: { type: "object", properties: {} } }];
const lookUp = '/tool look_up {"order": "7"}\n/then\n/say sent';
const called = await client.responses.create({ model, input: lookUp, tools });
const call = called.output.at(-1);
assert.deepEqual([call.type, call.name, JSON.parse(call.arguments)], ["function_call", "look_up", { order: "7" }]);
const result = { type: "function_call_output", call_id: call.call_id, output: "yesterday" };
const told = await client.responses.create({ model, input: [result], previous_response_id: called.id });
assert.equal(told.output_text, "sent");
const streamed = await client.responses.stream({ model, input: lookUp, tools }).finalResponse();
const whole2 = [{ role: "user", content: lookUp }, ...streamed.output];
const output2 = { type: "function_call_output", call_id: streamed.output.at(-1).call_id, output: "today" };
const last = client.responses.stream({ model, input: [...whole2, output2], tools });
assert.equal((await last.finalResponse()).output_text, "sent");
console.log("all of it works");

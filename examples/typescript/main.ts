// Creates a session, streams a turn, and decides what the turn asks.
//
//   npm ci && npm run build
//   HERMES_API_KEY=$(cat ../../data/api-key) npm start -- "Hello, who are you?"
//
// Everything about the server is known from `native.d.ts`, which is generated
// from its OpenAPI document.

import { stderr, stdin, stdout } from "node:process";
import { createInterface } from "node:readline";
import { EventSourceParserStream } from "eventsource-parser/stream";
import createClient from "openapi-fetch";
import type { components, paths } from "./native.js";

type Schemas = components["schemas"];
type Event = Schemas["Event"];
type Choice = Schemas["Choice"];

const CLEAN_UP = `/say I clean up.
/tool terminal {"command":"rm -rf build"}
/then
/say That was all.`;

const api = createClient<paths>({
  baseUrl: process.env["HERMES_URL"] ?? "http://127.0.0.1:8642",
  headers: { Authorization: `Bearer ${process.env["HERMES_API_KEY"] ?? ""}` },
});
const person = createInterface({ input: stdin });
const answers = person[Symbol.asyncIterator]();
/** Messages of which deltas came. */
const spoken = new Set<string>();

/** The events of a turn, each as what its `type` says. */
async function* turn(session: string, input: string): AsyncGenerator<Event> {
  const { data, error } = await api.POST("/v1/sessions/{id}/turns", {
    params: { path: { id: session } },
    body: { input },
    headers: { Accept: "text/event-stream" },
    parseAs: "stream",
  });
  if (error) throw refusal(error);
  const frames = data!.pipeThrough(new TextDecoderStream()).pipeThrough(new EventSourceParserStream());
  for await (const frame of frames) {
    yield JSON.parse(frame.data) as Event;
  }
}

/** Shows the event; whether the turn is over. */
async function handle(event: Event): Promise<boolean> {
  switch (event.type) {
    case "message.delta":
      spoken.add(event.data.message_id);
      stdout.write(event.data.text);
      return false;
    case "message.completed":
      if (event.data.message.role === "assistant") stdout.write(`${unheard(event.data.message)}\n`);
      return false;
    case "tool_call.started":
      stdout.write(`[${event.data.tool_call.name} runs]\n`);
      return false;
    case "tool_call.completed":
    case "tool_call.denied":
    case "tool_call.cancelled":
    case "tool_call.unknown":
      stdout.write(`[${event.data.tool_call.name}: ${event.data.tool_call.status}]\n`);
      return false;
    case "approval.requested":
      await decide(event.data.approval);
      return false;
    case "approval.resolved":
    case "approval.expired":
    case "approval.superseded":
    case "approval.cancelled":
      stdout.write(`[approval ${event.data.approval.status}]\n`);
      return false;
    case "turn.completed":
    case "turn.interrupted":
    case "turn.cancelled":
    case "turn.failed":
    case "turn.rolled_back":
      stdout.write(`[turn ${event.data.turn.status}, ${event.data.turn.usage.output_tokens} tokens]\n`);
      return true;
    case "session.created":
    case "session.updated":
    case "session.archived":
    case "session.status":
    case "turn.queued":
    case "turn.started":
    case "turn.steered":
    case "turn.waiting":
    case "turn.resumed":
    case "message.started":
    case "reasoning.delta":
    case "reasoning.completed":
    case "tool_call.proposed":
    case "tool_call.output_delta":
    case "tool.output_risk":
    case "question.asked":
    case "question.answered":
    case "question.expired":
    case "question.cancelled":
    case "subagent.started":
    case "subagent.completed":
    case "usage.updated":
    case "budget.warning":
    case "budget.exceeded":
    case "todo.updated":
    case "artifact.created":
    case "checkpoint.restored":
    case "memory.updated":
    case "process.started":
    case "process.exited":
    case "process.matched":
    case "process.watch_changed":
    case "model.retrying":
    case "stream.hello":
    case "stream.reset":
    case "heartbeat":
      return false;
    default:
      // A type that is not named above does not compile.
      return unheardOf(event);
  }
}

/** Whoever comes late to a message gets it as a whole, without deltas. */
function unheard(message: Schemas["Message"]): string {
  if (spoken.has(message.id)) return "";
  return message.content.map((part) => (part.type === "text" ? part.text : "")).join("");
}

/** Newer servers may know more types; they are to be passed over. */
function unheardOf(_event: never): boolean {
  return false;
}

async function decide(approval: Schemas["Approval"]): Promise<void> {
  stderr.write(`${approval.title}\n${JSON.stringify(approval.arguments)}\n`);
  const { data, error } = await api.POST("/v1/approvals/{id}/decision", {
    params: { path: { id: approval.id } },
    // The digest makes sure that what is decided is what was shown.
    body: { choice: await choose(approval.choices), digest: approval.digest },
  });
  if (error) throw refusal(error);
  stdout.write(`[${data.decision?.choice} by ${data.decision?.by}]\n`);
}

async function choose(choices: Choice[]): Promise<Choice> {
  for (;;) {
    stderr.write(`${choices.join(" / ")}? `);
    const line = await answers.next();
    if (line.done) throw new Error("nobody decides; the approval waits");
    const choice = choices.find((choice) => choice === line.value.trim());
    if (choice) return choice;
  }
}

function refusal(problem: Schemas["Problem"]): Error {
  return new Error(`${problem.status} ${problem.code}: ${problem.detail}`);
}

const { data: session, error } = await api.POST("/v1/sessions", {
  body: { preset: "hermes-api-server", title: "From TypeScript" },
});
if (error) throw refusal(error);
stdout.write(`${session.id}\n`);
for await (const event of turn(session.id, process.argv[2] ?? CLEAN_UP)) {
  if (await handle(event)) break;
}
person.close();

"""The official client of OpenAI against this server: HERMES_URL, HERMES_API_KEY."""

import json
import os
import urllib.request

import openai

BASE = os.environ["HERMES_URL"]
KEY = os.environ["HERMES_API_KEY"]
client = openai.OpenAI(base_url=BASE + "/v1", api_key=KEY, max_retries=0, timeout=20)

GUARDED = '/tool terminal {"command": "rm -rf never-there"}\n/then\n/say after'
TOOL = '/say I look.\n/tool terminal {"command": "echo ran"}\n/then\n/say all done'


def decide(approval, choice):
    request = urllib.request.Request(
        f"{BASE}/v1/approvals/{approval}/decision",
        json.dumps({"choice": choice}).encode(),
        {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"},
    )
    return json.load(urllib.request.urlopen(request))


def user(text):
    return [{"role": "user", "content": text}]


def chat():
    model = client.models.list().data[0].id
    assert client.models.retrieve(model).id == model
    answer = client.chat.completions.create(model=model, messages=user("/say hello"))
    assert answer.choices[0].message.content == "hello"
    assert answer.choices[0].finish_reason == "stop" and answer.usage.total_tokens > 0
    messages = user("/say hello") + [{"role": "assistant", "content": "hello"}] + user("/say again")
    assert client.chat.completions.create(model=model, messages=messages).choices[0].message.content == "again"


def chat_stream():
    with client.chat.completions.create(model="any", messages=user(TOOL), stream=True) as stream:
        text, usage = "", None
        for chunk in stream:
            text += chunk.choices[0].delta.content or ""
            usage = chunk.usage or usage
    assert text == "I look.\n\nall done", text
    assert usage.total_tokens > 0
    with client.chat.completions.stream(model="any", messages=user(TOOL)) as stream:
        stream.until_done()
        whole = stream.get_final_completion()
    assert whole.choices[0].message.content == text


def chat_approval(choice):
    with client.chat.completions.create(model="any", messages=user(GUARDED), stream=True) as stream:
        text = ""
        for chunk in stream:
            extra = (chunk.model_extra or {}).get("hermes") or {}
            asked = extra.get("approval")
            if asked and asked["event"] == "approval.request":
                decide(asked["approval_id"], choice)
            text += chunk.choices[0].delta.content or ""
    assert text == "after", text


def failures():
    try:
        openai.OpenAI(base_url=BASE + "/v1", api_key="wrong", max_retries=0).models.list()
        raise AssertionError("a wrong key was taken")
    except openai.AuthenticationError as error:
        assert error.code == "invalid_api_key", error.code
    try:
        client.chat.completions.create(model="any", messages=[])
        raise AssertionError("no messages were taken")
    except openai.BadRequestError as error:
        assert error.param == "messages", error.param
    answer = client.chat.completions.create(model="any", messages=user("/error 401"))
    assert answer.choices[0].finish_reason == "error"


def responses():
    first = client.responses.create(model="any", input=TOOL, instructions="be brief")
    assert first.status == "completed" and first.output_text.endswith("all done"), first
    kinds = [item.type for item in first.output]
    assert kinds == ["message", "function_call", "function_call_output", "message"], kinds
    again = client.responses.retrieve(first.id)
    assert again.output_text == first.output_text
    items = client.responses.input_items.list(first.id)
    assert items.data[0].content[0].text == TOOL
    second = client.responses.create(model="any", input="/say next", previous_response_id=first.id)
    assert second.output_text == "next" and second.instructions == "be brief"
    client.responses.create(model="any", input="/say in it", conversation="trip")
    failed = client.responses.create(model="any", input="/error 401")
    assert failed.status == "failed" and failed.error.message
    client.responses.delete(second.id)
    try:
        client.responses.retrieve(second.id)
        raise AssertionError("a deleted response is there")
    except openai.NotFoundError as error:
        assert error.code == "response_not_found", error.code


def responses_stream():
    with client.responses.stream(model="any", input=TOOL) as stream:
        deltas = "".join(event.delta for event in stream if event.type == "response.output_text.delta")
        whole = stream.get_final_response()
    assert deltas == "I look.all done" == whole.output_text, (deltas, whole)


def background():
    begun = client.responses.create(model="any", input="/tokens 400 400", background=True)
    assert begun.status in ("queued", "in_progress"), begun.status
    seen, number = "", None
    for event in client.responses.retrieve(begun.id, stream=True):
        number = event.sequence_number
        if event.type == "response.output_text.delta":
            seen += event.delta
            break
    done = None
    for event in client.responses.retrieve(begun.id, stream=True, starting_after=number):
        assert event.sequence_number > number
        number = event.sequence_number
        if event.type == "response.output_text.delta":
            seen += event.delta
        if event.type == "response.output_text.done":
            done = event.text
    whole = client.responses.retrieve(begun.id)
    assert whole.status == "completed" and whole.output_text == done
    assert done.startswith(seen) or seen == done, "what came behind the number fits what came before"
    stopped = client.responses.create(model="any", input="/tokens 100000 100", background=True)
    assert client.responses.cancel(stopped.id).status == "cancelled"


def approvals(approve):
    asked = client.responses.create(model="any", input=GUARDED)
    item = asked.output[-1]
    assert item.type == "mcp_approval_request" and item.name == "terminal", item
    answer = {"type": "mcp_approval_response", "approval_request_id": item.id, "approve": approve}
    after = client.responses.create(model="any", previous_response_id=asked.id, input=[answer])
    assert after.output_text == "after", after
    assert after.output[0].type == "function_call_output"


def functions(stream):
    """A function of ours: its call ends the response, its output goes on."""
    tools = [{"type": "function", "name": "look_up", "strict": False, "parameters": {"type": "object", "properties": {}}}]
    body = {"model": "any", "input": '/tool look_up {"order": "7"}\n/then\n/say sent', "tools": tools}
    if stream:
        with client.responses.stream(**body) as events:
            called = events.get_final_response()
    else:
        called = client.responses.create(**body)
    call = called.output[-1]
    assert (call.type, call.name, call.arguments) == ("function_call", "look_up", '{"order":"7"}'), call
    output = {"type": "function_call_output", "call_id": call.call_id, "output": "yesterday"}
    after = client.responses.create(model="any", previous_response_id=called.id, input=[output])
    assert after.output_text == "sent", after


chat()
chat_stream()
for choice in ("once", "deny"):
    chat_approval(choice)
failures()
responses()
responses_stream()
background()
for approve in (True, False):
    approvals(approve)
for stream in (False, True):
    functions(stream)
print("all of it works")
